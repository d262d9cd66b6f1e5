package parse

import (
	"encoding/binary"
	"errors"
)

var errMalformed = errors.New("malformed RTP packet")

// NoAudioLevel is the level of a packet that has none. RFC 6464 has levels from 0 to 127.
const NoAudioLevel = 0xFF

const (
	profileOneByte = 0xBEDE // RFC 8285 section 4.2
	profileTwoByte = 0x1000 // RFC 8285 section 4.3; its low four bits vary
)

// PassedExtensions are the negotiated ids of header extensions that are passed on; 0 is none. An index means the same extension for
// the publisher and for the subscriber.
type PassedExtensions [3]uint8

// ExtensionIDs are the negotiated ids of the header extensions that are read; 0 is none.
type ExtensionIDs struct {
	AudioLevel uint8 // RFC 6464
	Passed     PassedExtensions
	Descriptor uint8 // of the dependency descriptor
}

// Span is a part of a packet, in bytes.
type Span struct{ At, Length int }

// Header is what is read of an RTP header and its extensions.
type Header struct {
	Sequence     uint16
	Timestamp    uint32
	Marker       bool
	PayloadType  uint8
	AudioLevel   uint8 // -dBov, or noAudioLevel
	PayloadStart int
	PayloadEnd   int // padding comes after it
	Passed       [len(PassedExtensions{})]Span
	Descriptor   Span
}

// ReadHeader reads an RTP header (RFC 3550 section 5.1). Bytes that are not RTP of version 2, or that end before their header or
// padding does, are an error. An extension that is cut short is left out with those behind it.
func ReadHeader(b []byte, ids *ExtensionIDs) (Header, error) {
	const fixed = 12
	if len(b) < fixed || b[0]>>6 != 2 {
		return Header{}, errMalformed
	}
	h := Header{
		Sequence:     binary.BigEndian.Uint16(b[2:]),
		Timestamp:    binary.BigEndian.Uint32(b[4:]),
		Marker:       b[1]&0x80 != 0,
		PayloadType:  b[1] & 0x7F,
		AudioLevel:   NoAudioLevel,
		PayloadStart: fixed + 4*int(b[0]&0x0F), // with the contributing sources
		PayloadEnd:   len(b),
	}
	if b[0]&0x10 != 0 {
		if len(b) < h.PayloadStart+4 {
			return Header{}, errMalformed
		}
		profile := binary.BigEndian.Uint16(b[h.PayloadStart:])
		start := h.PayloadStart + 4
		end := start + 4*int(binary.BigEndian.Uint16(b[h.PayloadStart+2:]))
		if len(b) < end {
			return Header{}, errMalformed
		}
		h.PayloadStart = end
		if *ids != (ExtensionIDs{}) {
			h.readExtensions(profile, b[:end], start, ids)
		}
	}
	if b[0]&0x20 != 0 {
		// The last byte is the length of the padding, itself included, so that 0 is malformed.
		h.PayloadEnd -= int(b[len(b)-1])
		if b[len(b)-1] == 0 {
			return Header{}, errMalformed
		}
	}
	if h.PayloadEnd < h.PayloadStart {
		return Header{}, errMalformed
	}
	return h, nil
}

func (h *Header) readExtensions(profile uint16, b []byte, at int, ids *ExtensionIDs) {
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
		h.readExtension(id, b, Span{at, length}, ids)
		at += length
	}
}

// readExtension keeps an extension that is wanted. Those that are passed on must fit into the one-byte form of a header (16 bytes);
// only the dependency descriptor may be longer. The first audio level counts.
func (h *Header) readExtension(id uint8, b []byte, s Span, ids *ExtensionIDs) {
	if id == 0 || s.Length < 1 {
		return
	}
	if id == ids.Descriptor {
		h.Descriptor = s
		return
	}
	if s.Length > 16 {
		return
	}
	if id == ids.AudioLevel && h.AudioLevel == NoAudioLevel {
		h.AudioLevel = b[s.At] & 0x7F
	}
	for i, wanted := range ids.Passed {
		if id == wanted {
			h.Passed[i] = s
		}
	}
}
