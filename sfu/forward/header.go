package forward

import (
	"encoding/binary"
	"errors"
)

// errMalformed says that bytes are no RTP packet.
var errMalformed = errors.New("malformed RTP packet")

// noAudioLevel is an audio level that was not said. RFC 6464 levels are 0 to 127.
const noAudioLevel = 0xFF

const (
	profileOneByte = 0xBEDE // RFC 8285 section 4.2
	profileTwoByte = 0x1000 // RFC 8285 section 4.3; the low four bits are the application's
)

// header is what forwarding needs of an RTP header (RFC 3550 section 5.1).
type header struct {
	sequence     uint16
	timestamp    uint32
	marker       bool
	payloadType  uint8
	audioLevel   uint8 // -dBov, or noAudioLevel
	payloadStart int
	payloadEnd   int // without padding
}

// parseHeader reads an RTP header without allocating. levelID is the id of the
// audio level extension, 0 when there is none.
func parseHeader(b []byte, levelID uint8) (header, error) {
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
		if levelID != 0 {
			h.audioLevel = findAudioLevel(profile, b[start:end], levelID)
		}
	}
	if b[0]&0x20 != 0 {
		// The last byte of padding counts all of it, itself included.
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

// findAudioLevel walks the header extensions for RFC 6464's element. The top
// bit of its byte (voice activity) is an opinion of the sender that we do not use.
func findAudioLevel(profile uint16, b []byte, id uint8) uint8 {
	for len(b) > 0 {
		if b[0] == 0 { // padding between elements
			b = b[1:]
			continue
		}
		var elementID uint8
		var length, skip int
		switch {
		case profile == profileOneByte:
			elementID, length, skip = b[0]>>4, int(b[0]&0x0F)+1, 1
			if elementID == 15 {
				return noAudioLevel // reserved: stop here (RFC 8285 section 4.2)
			}
		case profile&0xFFF0 == profileTwoByte && len(b) >= 2:
			elementID, length, skip = b[0], int(b[1]), 2
		default:
			return noAudioLevel
		}
		if len(b) < skip+length {
			return noAudioLevel
		}
		if elementID == id && length >= 1 {
			return b[skip] & 0x7F
		}
		b = b[skip+length:]
	}
	return noAudioLevel
}
