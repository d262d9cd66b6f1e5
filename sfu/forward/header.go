package forward

import (
	"encoding/binary"
	"errors"
)

var errMalformed = errors.New("malformed RTP packet")

// RFC 6464's levels are 0 to 127.
const noAudioLevel = 0xFF

const (
	profileOneByte = 0xBEDE // RFC 8285 section 4.2
	profileTwoByte = 0x1000 // RFC 8285 section 4.3; the low four bits vary
)

// PassedExtensions are negotiated ids (0: none) to pass on. An index means the same extension on both sides.
type PassedExtensions [3]uint8

type extensionIDs struct {
	level      uint8 // RFC 6464
	passed     PassedExtensions
	descriptor uint8
}

type span struct{ at, length int }

type header struct {
	sequence     uint16
	timestamp    uint32
	marker       bool
	payloadType  uint8
	audioLevel   uint8 // -dBov, or noAudioLevel
	payloadStart int
	payloadEnd   int // without padding
	passed       [len(PassedExtensions{})]span
	descriptor   span
}

// parseHeader reads an RTP header (RFC 3550 section 5.1) without allocating.
func parseHeader(b []byte, ids *extensionIDs) (header, error) {
	const fixed = 12
	if len(b) < fixed || b[0]>>6 != 2 {
		return header{}, errMalformed
	}
	h := header{
		sequence:     binary.BigEndian.Uint16(b[2:]),
		timestamp:    binary.BigEndian.Uint32(b[4:]),
		marker:       b[1]&0x80 != 0,
		payloadType:  b[1] & 0x7F,
		audioLevel:   noAudioLevel,
		payloadStart: fixed + 4*int(b[0]&0x0F), // contributing sources
		payloadEnd:   len(b),
	}
	if b[0]&0x10 != 0 {
		if len(b) < h.payloadStart+4 {
			return header{}, errMalformed
		}
		profile := binary.BigEndian.Uint16(b[h.payloadStart:])
		start := h.payloadStart + 4
		end := start + 4*int(binary.BigEndian.Uint16(b[h.payloadStart+2:]))
		if len(b) < end {
			return header{}, errMalformed
		}
		h.payloadStart = end
		if *ids != (extensionIDs{}) {
			h.readExtensions(profile, b[:end], start, ids)
		}
	}
	if b[0]&0x20 != 0 {
		// The last byte counts itself.
		h.payloadEnd -= int(b[len(b)-1])
		if b[len(b)-1] == 0 {
			return header{}, errMalformed
		}
	}
	if h.payloadEnd < h.payloadStart {
		return header{}, errMalformed
	}
	return h, nil
}

func (h *header) readExtensions(profile uint16, b []byte, at int, ids *extensionIDs) {
	for at < len(b) {
		if b[at] == 0 {
			at++
			continue
		}
		var id uint8
		var length int
		switch {
		case profile == profileOneByte:
			id, length = b[at]>>4, int(b[at]&0x0F)+1
			if id == 15 {
				return // reserved (RFC 8285 section 4.2)
			}
			at++
		case profile&0xFFF0 == profileTwoByte && len(b)-at >= 2:
			id, length = b[at], int(b[at+1])
			at += 2
		default:
			return
		}
		if len(b)-at < length {
			return
		}
		h.readExtension(id, b, span{at, length}, ids)
		at += length
	}
}

// Only the dependency descriptor may need the two-byte form.
func (h *header) readExtension(id uint8, b []byte, s span, ids *extensionIDs) {
	if id == 0 || s.length < 1 {
		return
	}
	if id == ids.descriptor {
		h.descriptor = s
		return
	}
	if s.length > 16 {
		return
	}
	if id == ids.level && h.audioLevel == noAudioLevel {
		h.audioLevel = b[s.at] & 0x7F
	}
	for i, wanted := range ids.passed {
		if id == wanted {
			h.passed[i] = s
		}
	}
}
