package forward

import "strings"

type codec uint8

const (
	codecOpaque codec = iota // audio, or video that may be cut anywhere
	codecVP8
	codecVP9
	codecAV1
	codecH264
)

func codecOf(mimeType string) codec {
	switch {
	case strings.EqualFold(mimeType, "video/VP8"):
		return codecVP8
	case strings.EqualFold(mimeType, "video/VP9"):
		return codecVP9
	case strings.EqualFold(mimeType, "video/AV1"):
		return codecAV1
	case strings.EqualFold(mimeType, "video/H264"):
		return codecH264
	default:
		return codecOpaque
	}
}

type picture struct {
	keyframe      bool // its first packet, once keyframes.first has judged: switches happen here
	bare          bool // an IDR picture of H264, and no parameter sets in this packet
	width, height int  // 0: unknown

	// With temporal layers.
	begins   bool
	temporal uint8
	synced   bool // needs only the lowest layer
	opens    bool // no later picture needs a higher one before it

	// Where VP8's and VP9's counters are (0: nowhere). Each slot overwrites them.
	pictureIDAt   int
	pictureIDLong bool // 15 bits, else 7
	pictureID     uint16
	tl0At         int
	tl0           uint8
}

func parsePicture(c codec, payload []byte) picture {
	switch c {
	case codecVP8:
		return parseVP8(payload)
	case codecVP9:
		return parseVP9(payload)
	case codecAV1:
		return picture{keyframe: av1Keyframe(payload)}
	case codecH264:
		parameters := h264Begins(payload, naluSPS)
		idr := !parameters && h264Begins(payload, naluIDR)
		return picture{keyframe: parameters || idr, bare: idr}
	case codecOpaque:
	}
	return picture{keyframe: true}
}

// parseVP8 reads the payload descriptor (RFC 7741 section 4.2) and a keyframe's size (RFC 6386 section 9.1).
func parseVP8(b []byte) picture {
	var p picture
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
				return picture{}
			}
		}
		if bits&0x40 != 0 { // L: TL0PICIDX
			if len(b) <= at {
				return picture{}
			}
			p.tl0At, p.tl0 = at, b[at]
			at++
		}
		if bits&0x30 != 0 { // T or K
			if bits&0x20 != 0 && len(b) > at {
				p.temporal, p.synced = min(b[at]>>6, maxTemporal), b[at]&0x20 != 0
			}
			at++
		}
	}
	p.begins = first&0x10 != 0 && first&0x07 == 0
	if !p.begins || len(b) <= at || b[at]&0x01 != 0 {
		return p
	}
	p.keyframe = true
	frame := b[at:]
	if len(frame) >= 10 && frame[3] == 0x9D && frame[4] == 0x01 && frame[5] == 0x2A {
		p.width = int(frame[6]) | int(frame[7]&0x3F)<<8
		p.height = int(frame[8]) | int(frame[9]&0x3F)<<8
	}
	return p
}

// readPictureID returns the id's end; 0: cut short.
func (p *picture) readPictureID(b []byte, at int) int {
	if len(b) <= at {
		return 0
	}
	p.pictureIDAt = at
	if b[at]&0x80 == 0 {
		p.pictureID = uint16(b[at])
		return at + 1
	}
	if len(b) <= at+1 {
		return 0
	}
	p.pictureIDLong = true
	p.pictureID = uint16(b[at]&0x7F)<<8 | uint16(b[at+1])
	return at + 2
}

func (p *picture) patch(payload []byte, pictureID uint16, tl0 uint8) {
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
