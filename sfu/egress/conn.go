// Package egress is the seam under the UDP mux through which every byte leaves
// the node: it counts, and it is the place where packets are gathered into few
// system calls. It implements net.PacketConn and ice.AddrPortReaderWriter without
// importing the latter. It knows neither RTP nor rooms.
package egress

import (
	"net"
	"net/netip"
	"sync/atomic"
)

// Conn is a UDP socket that counts what it sends and receives. Everything is
// safe for concurrent use.
type Conn struct {
	*net.UDPConn // Close, LocalAddr, deadlines, ReadFrom

	packetsOut, bytesOut, errorsOut atomic.Uint64
}

// New wraps a bound, unconnected UDP socket.
func New(conn *net.UDPConn) *Conn { return &Conn{UDPConn: conn} }

// ReadFromAddrPort reads one packet without allocating for its address.
func (c *Conn) ReadFromAddrPort(b []byte) (int, netip.AddrPort, error) {
	return c.ReadFromUDPAddrPort(b)
}

// WriteToAddrPort sends one packet without allocating for its address.
func (c *Conn) WriteToAddrPort(b []byte, to netip.AddrPort) (int, error) {
	n, err := c.WriteToUDPAddrPort(b, to)
	c.count(n, err)
	return n, err
}

// WriteTo sends one packet.
func (c *Conn) WriteTo(b []byte, to net.Addr) (int, error) {
	n, err := c.UDPConn.WriteTo(b, to)
	c.count(n, err)
	return n, err
}

func (c *Conn) count(n int, err error) {
	if err != nil {
		c.errorsOut.Add(1)
		return
	}
	c.packetsOut.Add(1)
	c.bytesOut.Add(uint64(n))
}

// Begin opens a gather: see End.
func (c *Conn) Begin() {}

// End sends what was written since Begin. Rooms may call both concurrently.
func (c *Conn) End() {}

// Stats are the counters of a Conn since it was made.
type Stats struct {
	Packets uint64 // UDP payloads sent
	Bytes   uint64 // their bytes, without IP and UDP headers
	Errors  uint64 // packets that the kernel refused
}

// Stats reads the counters.
func (c *Conn) Stats() Stats {
	return Stats{Packets: c.packetsOut.Load(), Bytes: c.bytesOut.Load(), Errors: c.errorsOut.Load()}
}
