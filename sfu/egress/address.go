package egress

import "net/netip"

// Address is where packets come from and go to: a UDP address, or one TCP connection. Two are equal only if they are the same
// connection, or both UDP.
type Address struct {
	netip.AddrPort
	Stream *Stream // nil: UDP
}

// UDP is a UDP address.
func UDP(at netip.AddrPort) Address { return Address{AddrPort: at} }

// Frame names the packets of a picture that are of no use without each other: a stream in the upper half, its frame in the lower. 0 is for
// what is left out last: sound, and what keeps a connection up.
type Frame uint64

// FrameOf names a frame of a stream.
func FrameOf(stream, frame uint32) Frame { return Frame(stream)<<32 | Frame(frame) }

func (f Frame) stream() uint32 { return uint32(f >> 32) }
