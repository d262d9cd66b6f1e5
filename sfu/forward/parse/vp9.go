package parse

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

// parseVP9 reads the payload descriptor (RFC 9628 section 4.2) and, of a keyframe with a scalability structure, the size of the
// highest spatial layer.
func parseVP9(b []byte) Picture {
	var p Picture
	if len(b) < 1 {
		return p
	}
	first, at := b[0], 1
	if first&vp9PictureID != 0 {
		if at = p.readPictureID(b, at); at == 0 {
			return Picture{}
		}
	}
	spatial := byte(0)
	if first&vp9Layers != 0 {
		if len(b) <= at {
			return Picture{}
		}
		spatial = b[at] >> 1 & 0x07
		p.Temporal, p.Opens = min(b[at]>>5, MaxTemporal), b[at]&0x10 != 0
		at++
		if first&vp9Flexible == 0 {
			if len(b) <= at {
				return Picture{}
			}
			p.tl0At, p.TL0 = at, b[at]
			at++
		}
	}
	p.Begins = first&vp9Begin != 0 && spatial == 0
	if !p.Begins || first&vp9Predicted != 0 {
		return p
	}
	p.Keyframe = true
	if first&vp9Structure != 0 && len(b) > at {
		p.readVP9Size(b[at:])
	}
	return p
}

func (p *Picture) readVP9Size(b []byte) {
	layers := int(b[0]>>5) + 1
	const hasSizes = 0x10 // Y
	if b[0]&hasSizes == 0 || len(b) < 1+4*layers {
		return
	}
	last := b[1+4*(layers-1):]
	p.Width, p.Height = int(binary.BigEndian.Uint16(last)), int(binary.BigEndian.Uint16(last[2:]))
}

// av1Keyframe reports whether a coded video sequence begins with this packet: bit N of the aggregation header is set, and bit Z,
// the continuation of an earlier packet, is not (RTP payload format for AV1, section 4.4).
func av1Keyframe(b []byte) bool { return len(b) > 1 && b[0]&0x08 != 0 && b[0]&0x80 == 0 }
