package forward

import "encoding/binary"

// Bits of the VP9 payload descriptor's first byte (RFC 9628 section 4.2).
const (
	vp9PictureID = 0x80 // I
	vp9Predicted = 0x40 // P
	vp9Layers    = 0x20 // L
	vp9Flexible  = 0x10 // F
	vp9Begin     = 0x08 // B
	vp9Structure = 0x02 // V
)

func parseVP9(b []byte) picture {
	var p picture
	if len(b) < 1 {
		return p
	}
	first, at := b[0], 1
	if first&vp9PictureID != 0 {
		if at = p.readPictureID(b, at); at == 0 {
			return picture{}
		}
	}
	spatial := byte(0)
	if first&vp9Layers != 0 {
		if len(b) <= at {
			return picture{}
		}
		spatial = b[at] >> 1 & 0x07
		p.temporal, p.opens = min(b[at]>>5, maxTemporal), b[at]&0x10 != 0
		at++
		if first&vp9Flexible == 0 {
			if len(b) <= at {
				return picture{}
			}
			p.tl0At, p.tl0 = at, b[at]
			at++
		}
	}
	p.begins = first&vp9Begin != 0 && spatial == 0
	if !p.begins || first&vp9Predicted != 0 {
		return p
	}
	p.keyframe = true
	if first&vp9Structure != 0 && len(b) > at {
		p.readVP9Size(b[at:])
	}
	return p
}

func (p *picture) readVP9Size(b []byte) {
	layers := int(b[0]>>5) + 1
	if b[0]&0x10 == 0 || len(b) < 1+4*layers { // Y
		return
	}
	last := b[1+4*(layers-1):]
	p.width, p.height = int(binary.BigEndian.Uint16(last)), int(binary.BigEndian.Uint16(last[2:]))
}

// av1Keyframe reads N, the start of a coded video sequence, without Z (RTP payload format for AV1, section 4.4).
func av1Keyframe(b []byte) bool { return len(b) > 1 && b[0]&0x08 != 0 && b[0]&0x80 == 0 }
