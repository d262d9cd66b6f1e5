package peer

import (
	"encoding/binary"

	"github.com/holdfast-rtc/holdfast/lab/portrait"
)

const (
	maxDescriptorBytes = 8 // of the first packet of a VP9 keyframe
	payloadBytes       = maxDescriptorBytes + packetBytes
)

// packet returns the payload of the next size bytes of the present frame, valid until the next call.
func (v *videoTrack) packet(size int) []byte {
	p := v.payload[:0]
	if v.codec == portrait.VP9 {
		p = v.vp9Descriptor(p, size)
	} else {
		p = v.vp8Descriptor(p)
	}
	content := min(size, len(v.picture))
	p = append(p, v.picture[:content]...)
	v.picture = v.picture[content:]
	// Both decoders ignore zeros behind a frame.
	return append(p, make([]byte, size-content)...)
}

// vp8Descriptor has a picture id of 15 bits (RFC 7741 section 4.2).
func (v *videoTrack) vp8Descriptor(p []byte) []byte {
	const extended, startsPartition, hasPictureID = 0x80, 0x10, 0x80
	first := byte(extended)
	if !v.started {
		first |= startsPartition
	}
	return binary.BigEndian.AppendUint16(append(p, first, hasPictureID), 0x8000|v.pictureID)
}

// vp9Descriptor has a picture id of 15 bits, and a keyframe's size (RFC 9628 section 4.2).
func (v *videoTrack) vp9Descriptor(p []byte, size int) []byte {
	const hasPictureID, predicted, begins, ends, hasStructure, hasSize = 0x80, 0x40, 0x08, 0x04, 0x02, 0x10
	first := byte(hasPictureID)
	if !v.key {
		first |= predicted
	}
	if !v.started {
		first |= begins
	}
	if size == v.left {
		first |= ends
	}
	structure := v.key && !v.started
	if structure {
		first |= hasStructure
	}
	p = binary.BigEndian.AppendUint16(append(p, first), 0x8000|v.pictureID)
	if structure {
		p = append(p, hasSize)
		p = binary.BigEndian.AppendUint16(p, uint16(v.encoder.layer.size.Width))
		p = binary.BigEndian.AppendUint16(p, uint16(v.encoder.layer.size.Height))
	}
	return p
}

// silence appends to p, which is empty, an Opus packet of size bytes: silent frames of 20 ms and padding (RFC 6716, section 3.2.5).
func silence(p []byte, frames, size int) []byte {
	const (
		fullband20ms   = 31 << 3 // CELT, mono
		anyNumber      = 3
		padded         = 0x40
		headerBytes    = 3
		longestPadding = 254
	)
	p = append(p, fullband20ms|anyNumber, padded|byte(frames), 0)
	for range frames {
		p = append(p, 0xff, 0xfe)
	}
	padding := min(max(size-len(p), 0), longestPadding)
	p[headerBytes-1] = byte(padding)
	return append(p, make([]byte, padding)...)
}
