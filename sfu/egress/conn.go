// Package egress is the seam under the transports through which every byte leaves
// the node: it counts, and it sends what was gathered in a Batch with few system
// calls. What comes in passes through as well.
//
// It promises that the packets of one destination leave in the order in which
// one goroutine wrote them, that no packet waits longer than the End of its batch,
// that one batch does not wait for another, and that a kernel without these system
// calls gets the packets one by one. It knows neither RTP nor rooms.
package egress

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// Conn is a UDP socket that counts what it sends. Everything is safe for concurrent use.
type Conn struct {
	*net.UDPConn // Close, LocalAddr, the deadline of reads

	counters
	gathers bool // else every packet is sent by itself
	sender  sender

	mu    sync.Mutex // guards spare
	spare []*queue   // that no Batch uses
}

// maxSpare is how many batches keep their memory: about as many as send at the same time.
const maxSpare = 8

// counters are Stats as they are written.
type counters struct {
	packets, bytes, calls, errors, refused atomic.Uint64
}

// Options switch what happens between Begin and End of a Batch.
type Options struct {
	// Gather sends what was written between Begin and End together (sendmmsg,
	// on Linux). Without it Begin and End do nothing.
	Gather bool
	// Segment lets the kernel cut several packets of one size for one
	// destination out of one (UDP_SEGMENT, Linux 4.18), where there are several.
	// They leave the network card back to back, which not every path likes.
	Segment bool
}

// New wraps a bound, unconnected UDP socket and sends each packet by itself.
func New(conn *net.UDPConn) *Conn { return NewWith(conn, Options{}) }

// NewWith wraps a bound, unconnected UDP socket.
func NewWith(conn *net.UDPConn, options Options) *Conn {
	c := &Conn{UDPConn: conn}
	c.gathers = options.Gather && c.sender.open(conn, &c.counters, options.Segment)
	return c
}

// ReadFromAddrPort reads one packet without allocating for its address.
func (c *Conn) ReadFromAddrPort(b []byte) (int, netip.AddrPort, error) {
	return c.ReadFromUDPAddrPort(b)
}

// WriteToAddrPort sends one packet at once, without allocating for its address.
func (c *Conn) WriteToAddrPort(b []byte, to netip.AddrPort) (int, error) {
	n, err := c.WriteToUDPAddrPort(b, to)
	c.count(n, err)
	return n, err
}

func (c *Conn) queue() *queue {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := len(c.spare) - 1; last >= 0 {
		q := c.spare[last]
		c.spare = c.spare[:last]
		return q
	}
	return newQueue()
}

func (c *Conn) putBack(q *queue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.spare) < maxSpare {
		c.spare = append(c.spare, q)
	}
}

func (c *Conn) send(q *queue) {
	if len(q.packets) > 0 {
		c.sender.send(q)
		q.reset()
	}
}

// countGathered is count for a packet whose writer has been told that it was sent.
func (c *counters) countGathered(n int, err error) {
	c.count(n, err)
	if err != nil {
		c.refused.Add(1)
	}
}

func (c *counters) count(n int, err error) {
	c.calls.Add(1)
	if err != nil {
		c.errors.Add(1)
		return
	}
	c.packets.Add(1)
	c.bytes.Add(uint64(n))
}

// Stats are the counters of a Conn since it was made.
type Stats struct {
	Packets uint64 // UDP payloads sent
	Bytes   uint64 // their bytes, without IP and UDP headers
	Calls   uint64 // system calls that it took
	Errors  uint64 // packets that the kernel refused
	Refused uint64 // those of them that had been gathered, so that their writer does not know
}

// Stats reads the counters.
func (c *Conn) Stats() Stats {
	return Stats{
		Packets: c.packets.Load(), Bytes: c.bytes.Load(), Calls: c.calls.Load(), Errors: c.errors.Load(), Refused: c.refused.Load(),
	}
}
