package peer

import "encoding/binary"

// SILK wideband, 20 ms, one frame (RFC 6716 section 3.1).
const opusTOC = 0x48

const (
	descriptorBytes = 4  // RFC 7741 section 4.2, 15-bit picture id
	vp8HeaderBytes  = 10 // RFC 6386 section 9.1
	payloadBytes    = descriptorBytes + packetBytes
)

// packet returns size bytes of the present frame, valid until the next call. The payload is filler.
func (v *videoTrack) packet(size int) []byte {
	p := v.payload[:descriptorBytes+size]
	p[0], p[1] = 0x80, 0x80 // X, then I
	binary.BigEndian.PutUint16(p[2:], 0x8000|v.pictureID)
	frame := p[descriptorBytes:]
	if v.started {
		frame[0] = 0
		return p
	}
	p[0] |= 0x10    // S: the frame begins
	frame[0] = 0x11 // P=1: an inter frame, shown
	if v.key {
		frame[0] = 0x10
		frame[3], frame[4], frame[5] = 0x9d, 0x01, 0x2a
		binary.LittleEndian.PutUint16(frame[6:], uint16(v.encoder.layer.width))
		binary.LittleEndian.PutUint16(frame[8:], uint16(v.encoder.layer.height))
	}
	return p
}
