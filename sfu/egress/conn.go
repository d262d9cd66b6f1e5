// Package egress is the seam under the transports through which every byte leaves
// the node: it counts, and it sends what was gathered in a Batch with few system
// calls. What comes in passes through as well: on Linux through a socket for each core, several packets a call.
// Clients whose UDP is blocked come by TCP, to the same port: each packet behind its length (RFC 4571).
//
// It promises that the packets of one destination leave in the order in which
// one goroutine wrote them, that no packet waits longer than the End of its batch,
// that one batch does not wait for another, and that a kernel without these system
// calls gets the packets one by one. A TCP connection that does not keep up makes nobody wait: what waits for it is bounded, and left
// out beyond that. It knows neither RTP nor rooms.
package egress

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
)

// Conn is an address that counts what it sends: of UDP, with one socket or several, and of TCP where that is wanted. Everything is safe for
// concurrent use.
type Conn struct {
	counters
	sockets []*socket
	streams *streams      // nil: no TCP
	gathers bool          // else every packet is sent by itself
	batches atomic.Uint32 // so far, by which they are given a socket

	mu    sync.Mutex // guards spare
	spare []*queue   // that no Batch uses
}

// socket is one of those that are bound to the address.
type socket struct {
	*net.UDPConn

	sender sender
}

// maxSpare is how many batches keep their memory: about as many as send at the same time.
const maxSpare = 8

// counters are Stats as they are written.
type counters struct {
	packets, bytes, calls, errors, refused, dropped atomic.Uint64
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
	// Streams takes TCP connections as well; nil for none. The Conn closes it.
	Streams *net.TCPListener
}

// New wraps unconnected UDP sockets that are bound to one address: one, or those of Listen.
func New(options Options, sockets ...*net.UDPConn) *Conn {
	c := &Conn{gathers: options.Gather}
	for _, conn := range sockets {
		s := &socket{UDPConn: conn}
		c.gathers = s.sender.open(conn, &c.counters, options.Segment) && c.gathers
		c.sockets = append(c.sockets, s)
	}
	if options.Streams != nil {
		c.streams = newStreams(options.Streams, &c.counters)
	}
	return c
}

// LocalAddr is the address of UDP.
func (c *Conn) LocalAddr() net.Addr { return c.sockets[0].LocalAddr() }

// StreamAddr is the address of TCP, zero for none.
func (c *Conn) StreamAddr() netip.AddrPort {
	if c.streams == nil {
		return netip.AddrPort{}
	}
	at, _ := c.streams.listener.Addr().(*net.TCPAddr)
	return at.AddrPort()
}

// Streams counts the TCP connections.
func (c *Conn) Streams() int {
	if c.streams == nil {
		return 0
	}
	c.streams.mu.Lock()
	defer c.streams.mu.Unlock()
	return len(c.streams.all)
}

// Close closes every socket, and every TCP connection.
func (c *Conn) Close() error {
	var faults []error
	if c.streams != nil {
		c.streams.close()
	}
	for _, s := range c.sockets {
		faults = append(faults, s.Close())
	}
	return errors.Join(faults...)
}

// Readers is how many goroutines may call Receive at a time.
func (c *Conn) Readers() int {
	if c.streams != nil {
		return len(c.sockets) + 1
	}
	return len(c.sockets)
}

// Receive gives take every packet that comes to one of the sockets, until Close; then it returns an error that is net.ErrClosed. The
// packet is take's for the time of the call. Every reader, a number below Readers, is to be used by a goroutine of its own. The last one is
// that of all TCP connections, where they are taken: each calls take by itself, and gone after its last packet.
func (c *Conn) Receive(reader int, take func(b []byte, from Address), gone func(from Address)) error {
	if reader == len(c.sockets) {
		return c.streams.receive(take, gone)
	}
	return receive(c.sockets[reader].UDPConn, func(b []byte, from netip.AddrPort) { take(b, UDP(from)) })
}

// Write sends one packet at once, without allocating for its address. It does not wait for a TCP connection.
func (c *Conn) Write(b []byte, to Address) (int, error) { return c.write(b, to, 0) }

func (c *Conn) write(b []byte, to Address, frame Frame) (int, error) {
	if to.Stream != nil {
		return len(b), to.Stream.put(frame, b)
	}
	n, err := c.sockets[0].WriteToUDPAddrPort(b, to.AddrPort)
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

// countGathered is count for a packet whose writer has been told that it was sent.
func (c *counters) countGathered(n int, err error) {
	c.count(n, err)
	if err != nil {
		c.refused.Add(1)
	}
}

// wrote is count for what a TCP connection was given at once.
func (c *counters) wrote(b *block, err error) {
	c.calls.Add(1)
	if err != nil {
		c.errors.Add(uint64(b.packets))
		return
	}
	c.packets.Add(uint64(b.packets))
	c.bytes.Add(uint64(len(b.bytes)))
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
	Packets uint64 // sent
	Bytes   uint64 // of them, without the headers of IP, UDP and TCP
	Calls   uint64 // system calls that it took
	Errors  uint64 // packets that the kernel refused
	Refused uint64 // those of them that had been gathered, so that their writer does not know
	Dropped uint64 // packets that TCP connections were too slow for
}

// Stats reads the counters.
func (c *Conn) Stats() Stats {
	return Stats{
		Packets: c.packets.Load(), Bytes: c.bytes.Load(), Calls: c.calls.Load(), Errors: c.errors.Load(), Refused: c.refused.Load(),
		Dropped: c.dropped.Load(),
	}
}
