package egress

import (
	"encoding/binary"
	"errors"
	"io"
)

const (
	maxPacket = 1500
	// headerBytes is the size of the length before each packet (RFC 4571).
	headerBytes = 2
	// strangerRoom and clientRoom are the sizes of the read buffer before and after Admit.
	strangerRoom, clientRoom = headerBytes + maxPacket, 16 << 10
	strangerBytes            = 8 << 10
)

var errLongPacket = errors.New("a packet is longer than any that is read here")

// unframer takes packets out of a byte stream (RFC 4571).
type unframer struct {
	from       io.Reader
	buffer     []byte
	start, end int
	total      int
}

func newUnframer(from io.Reader) *unframer {
	return &unframer{from: from, buffer: make([]byte, strangerRoom)}
}

func (u *unframer) grow() {
	if len(u.buffer) < clientRoom {
		larger := make([]byte, clientRoom)
		u.start, u.end = 0, copy(larger, u.buffer[u.start:u.end])
		u.buffer = larger
	}
}

// next returns the next packet, which is valid until the following call. It skips empty packets.
func (u *unframer) next() ([]byte, error) {
	for {
		if err := u.have(headerBytes); err != nil {
			return nil, err
		}
		length := int(binary.BigEndian.Uint16(u.buffer[u.start:]))
		if length > maxPacket {
			return nil, errLongPacket
		}
		if err := u.have(headerBytes + length); err != nil {
			return nil, err
		}
		begin := u.start + headerBytes
		u.start = begin + length
		if length > 0 {
			return u.buffer[begin:u.start:u.start], nil
		}
	}
}

// have reads until the buffer holds the wanted number of bytes. The buffer has room for the longest packet.
func (u *unframer) have(wanted int) error {
	if u.start == u.end {
		u.start, u.end = 0, 0
	}
	if len(u.buffer)-u.start < wanted {
		u.start, u.end = 0, copy(u.buffer, u.buffer[u.start:u.end])
	}
	for u.end-u.start < wanted {
		n, err := u.from.Read(u.buffer[u.end:])
		u.end += n
		u.total += n
		if err != nil && u.end-u.start < wanted {
			return err
		}
	}
	return nil
}
