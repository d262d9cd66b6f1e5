package egress

import "net/netip"

// Address is a UDP address or one TCP connection. Equal ones are the same connection, or both UDP.
type Address struct {
	netip.AddrPort
	// Stream is nil for UDP.
	Stream *Stream
}

// UDP returns a UDP address.
func UDP(at netip.AddrPort) Address { return Address{AddrPort: at} }

// Frame names the packets of one picture of one stream, which are useless without each other. 0 is for sound and
// checks.
type Frame uint64

// FrameOf names a stream's frame.
func FrameOf(stream, frame uint32) Frame { return Frame(stream)<<32 | Frame(frame) }

func (f Frame) stream() uint32 { return uint32(f >> 32) }
