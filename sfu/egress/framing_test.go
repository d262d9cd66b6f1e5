package egress

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

func framed(packets ...[]byte) (stream []byte) {
	for _, packet := range packets {
		stream = append(binary.BigEndian.AppendUint16(stream, uint16(len(packet))), packet...)
	}
	return stream
}

func TestPacketsInAStream(t *testing.T) {
	want := [][]byte{[]byte("a"), bytes.Repeat([]byte("b"), maxPacket), []byte("ccc"), bytes.Repeat([]byte("d"), 1200)}
	stream := framed(want[0], nil, want[1], want[2], nil, nil, want[3])
	for name, from := range map[string]io.Reader{
		"at once": bytes.NewReader(stream), "byte by byte": iotest.OneByteReader(bytes.NewReader(stream)), "by halves": iotest.HalfReader(bytes.NewReader(stream)),
		"with its end": iotest.DataErrReader(bytes.NewReader(stream)),
	} {
		u := newUnframer(from)
		for i, packet := range want {
			got, err := u.next()
			if err != nil || !bytes.Equal(got, packet) {
				t.Errorf("%s: packet %d has %d bytes, want %d (%v)", name, i, len(got), len(packet), err)
			}
			if i == 1 {
				u.grow()
			}
		}
		if _, err := u.next(); !errors.Is(err, io.EOF) {
			t.Errorf("%s: it ends with %v", name, err)
		}
	}
}

func TestALongPacketEndsAStream(t *testing.T) {
	u := newUnframer(bytes.NewReader(framed([]byte("a"), make([]byte, maxPacket+1))))
	if _, err := u.next(); err != nil {
		t.Fatal(err)
	}
	if _, err := u.next(); !errors.Is(err, errLongPacket) {
		t.Errorf("it ends with %v", err)
	}
}

// FuzzUnframer: whatever comes, in whatever pieces, gives the packets that it says, and takes no more memory than the buffer.
func FuzzUnframer(f *testing.F) {
	f.Add(framed([]byte("packet"), nil, []byte("another")), uint8(3), uint8(1))
	f.Add(framed(bytes.Repeat([]byte("x"), maxPacket), []byte("y")), uint8(255), uint8(0))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"), uint8(5), uint8(0))
	f.Fuzz(func(t *testing.T, stream []byte, piece, growAt uint8) {
		u := newUnframer(&pieces{rest: stream, size: int(piece) + 1})
		at := 0
		for n := 0; ; n++ {
			if n == int(growAt) {
				u.grow()
			}
			packet, err := u.next()
			for err == nil && at+2 <= len(stream) && binary.BigEndian.Uint16(stream[at:]) == 0 {
				at += 2
			}
			if len(u.buffer) > clientRoom {
				t.Fatalf("the buffer has %d bytes", len(u.buffer))
			}
			if err != nil {
				whole := at
				for whole+2 <= len(stream) && binary.BigEndian.Uint16(stream[whole:]) == 0 {
					whole += 2
				}
				if whole+2 <= len(stream) {
					if length := int(binary.BigEndian.Uint16(stream[whole:])); length <= maxPacket && whole+2+length <= len(stream) {
						t.Fatalf("a packet of %d bytes at %d was not given out: %v", length, whole, err)
					}
				}
				return
			}
			length := int(binary.BigEndian.Uint16(stream[at:]))
			if length > maxPacket || !bytes.Equal(packet, stream[at+2:at+2+length]) {
				t.Fatalf("a packet of %d bytes at %d came out as %d", length, at, len(packet))
			}
			at += 2 + length
		}
	})
}

// pieces gives a stream in pieces.
type pieces struct {
	rest []byte
	size int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(p.size, len(b))], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
