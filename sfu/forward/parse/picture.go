package parse

// Picture is what a packet of video tells of its picture.
type Picture struct {
	// Keyframe: the packet looks like the first one of a keyframe. Several packets may; KeyframeStarts tells which of them is.
	Keyframe bool
	// Bare: the packet begins an IDR picture of H264 and has no parameter sets.
	Bare          bool
	Width, Height int // of a keyframe, in pixels; 0: unknown

	// Begins: the packet is the first one of its picture, which is in the temporal layer Temporal. Synced pictures need pictures of
	// the lowest layer only. After one that Opens, no picture needs an earlier one of a higher layer.
	Begins   bool
	Temporal uint8
	Synced   bool
	Opens    bool

	// The counters of VP8 and VP9, and where they are in the payload (0: nowhere). Patch overwrites them.
	pictureIDAt   int
	pictureIDLong bool // 15 bits, else 7
	PictureID     uint16
	tl0At         int
	TL0           uint8
}

// ReadPayload reads the picture of a packet from its payload.
func ReadPayload(c Codec, payload []byte) Picture {
	switch c {
	case VP8:
		return parseVP8(payload)
	case VP9:
		return parseVP9(payload)
	case AV1:
		return Picture{Keyframe: av1Keyframe(payload)}
	case H264:
		parameters := h264Begins(payload, naluSPS)
		idr := !parameters && h264Begins(payload, naluIDR)
		return Picture{Keyframe: parameters || idr, Bare: idr}
	case Opaque:
	}
	return Picture{Keyframe: true}
}

// parseVP8 reads the payload descriptor (RFC 7741 section 4.2) and a keyframe's size (RFC 6386 section 9.1).
func parseVP8(b []byte) Picture {
	var p Picture
	if len(b) < 1 {
		return p
	}
	first := b[0]
	at := 1
	if first&0x80 != 0 { // X: extended
		if len(b) < 2 {
			return p
		}
		bits := b[1]
		at = 2
		if bits&0x80 != 0 { // I: picture id
			if at = p.readPictureID(b, at); at == 0 {
				return Picture{}
			}
		}
		if bits&0x40 != 0 { // L: TL0PICIDX
			if len(b) <= at {
				return Picture{}
			}
			p.tl0At, p.TL0 = at, b[at]
			at++
		}
		if bits&0x30 != 0 { // T or K
			if bits&0x20 != 0 && len(b) > at {
				p.Temporal, p.Synced = min(b[at]>>6, MaxTemporal), b[at]&0x20 != 0
			}
			at++
		}
	}
	p.Begins = first&0x10 != 0 && first&0x07 == 0
	if !p.Begins || len(b) <= at || b[at]&0x01 != 0 {
		return p
	}
	p.Keyframe = true
	frame := b[at:]
	if len(frame) >= 10 && frame[3] == 0x9D && frame[4] == 0x01 && frame[5] == 0x2A {
		p.Width = int(frame[6]) | int(frame[7]&0x3F)<<8
		p.Height = int(frame[8]) | int(frame[9]&0x3F)<<8
	}
	return p
}

// readPictureID returns where the picture id ends; 0 if it is cut short.
func (p *Picture) readPictureID(b []byte, at int) int {
	if len(b) <= at {
		return 0
	}
	p.pictureIDAt = at
	if b[at]&0x80 == 0 {
		p.PictureID = uint16(b[at])
		return at + 1
	}
	if len(b) <= at+1 {
		return 0
	}
	p.pictureIDLong = true
	p.PictureID = uint16(b[at]&0x7F)<<8 | uint16(b[at+1])
	return at + 2
}

// Patch overwrites the counters of a payload that was read as p.
func (p *Picture) Patch(payload []byte, pictureID uint16, tl0 uint8) {
	if p.pictureIDAt != 0 {
		if p.pictureIDLong {
			payload[p.pictureIDAt] = 0x80 | byte(pictureID>>8)&0x7F
			payload[p.pictureIDAt+1] = byte(pictureID)
		} else {
			payload[p.pictureIDAt] = byte(pictureID) & 0x7F
		}
	}
	if p.tl0At != 0 {
		payload[p.tl0At] = tl0
	}
}

const (
	naluIDR   = 5
	naluSPS   = 7
	naluSTAPA = 24
	naluFUA   = 28
)

// h264Begins reports whether a NAL unit of the type begins in the packet (RFC 6184).
func h264Begins(b []byte, wanted byte) bool {
	if len(b) < 1 {
		return false
	}
	switch kind := b[0] & 0x1F; kind {
	case naluSTAPA:
		for b = b[1:]; len(b) > 2; {
			size := int(b[0])<<8 | int(b[1])
			if b[2]&0x1F == wanted {
				return true
			}
			if size == 0 || len(b) < 2+size {
				return false
			}
			b = b[2+size:]
		}
		return false
	case naluFUA:
		return len(b) > 1 && b[1]&0x80 != 0 && b[1]&0x1F == wanted
	default:
		return kind == wanted
	}
}

// MaxTemporal is the highest temporal layer that is told apart. Packets of higher ones count as of this one.
const MaxTemporal = 3
