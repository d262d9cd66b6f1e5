package connection

import "encoding/binary"

// restore writes the packet that a retransmission repeats (RFC 4588 section 4). It returns the packet's length, or 0 if the
// retransmission is only padding, which browsers send to measure a path, or cannot be read.
func restore(b, packet []byte, of *stream) int {
	start := payloadStart(packet)
	if start == 0 || len(packet) < start+2 {
		return 0
	}
	original := packet[start : start+2]
	n := copy(b, packet[:start])
	n += copy(b[n:], packet[start+2:])
	b[1] = b[1]&0x80 | of.codec.PayloadType
	copy(b[2:], original)
	binary.BigEndian.PutUint32(b[8:], of.ssrc)
	if padded := b[0]&0x20 != 0; padded && int(b[n-1]) >= n-start {
		return 0
	}
	return n
}

// payloadStart returns where the payload of an RTP packet begins (RFC 3550 section 5.1), or 0 if the header is truncated.
func payloadStart(b []byte) int {
	if len(b) < 12 {
		return 0
	}
	start := 12 + 4*int(b[0]&0x0F)
	if b[0]&0x10 != 0 {
		if len(b) < start+4 {
			return 0
		}
		start += 4 + 4*int(binary.BigEndian.Uint16(b[start+2:]))
	}
	if len(b) < start {
		return 0
	}
	return start
}
