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

// Conn is an address of UDP sockets and perhaps TCP. It is safe for concurrent use.
type Conn struct {
	counters
	sockets []*socket
	// streams is nil without TCP.
	streams *streams
	gathers bool
	batches atomic.Uint32

	mu    sync.Mutex // guards spare
	spare []*queue
}

type socket struct {
	*net.UDPConn

	sender sender
}

// maxSpare is how many unused batches keep their memory.
const maxSpare = 8

type counters struct {
	packets, bytes, calls, errors, refused, dropped atomic.Uint64
}

// Options are those of a Conn.
type Options struct {
	// Gather sends what is between Begin and End together (sendmmsg, Linux).
	Gather bool
	// Segment lets the kernel cut a message into packets (UDP_SEGMENT, Linux 4.18). They leave back to back, which not
	// every path likes.
	Segment bool
	// Streams takes TCP connections; nil: none. The Conn closes it.
	Streams *net.TCPListener
}

// New wraps unconnected UDP sockets of one address.
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

// LocalAddr returns the UDP address.
func (c *Conn) LocalAddr() net.Addr { return c.sockets[0].LocalAddr() }

// StreamAddr returns the TCP address, or the zero value without TCP.
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

// Close closes everything.
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

// Readers returns how many goroutines may call Receive at one time.
func (c *Conn) Readers() int {
	if c.streams != nil {
		return len(c.sockets) + 1
	}
	return len(c.sockets)
}

// Receive gives take a socket's packets, for the time of the call, until Close; then its error is net.ErrClosed. Each
// reader, below Readers, has its own goroutine. The last is for TCP: each connection calls take itself, and gone after
// its last packet.
func (c *Conn) Receive(reader int, take func(b []byte, from Address), gone func(from Address)) error {
	if reader == len(c.sockets) {
		return c.streams.receive(take, gone)
	}
	return receive(c.sockets[reader].UDPConn, func(b []byte, from netip.AddrPort) { take(b, UDP(from)) })
}

// Write sends one packet at once, without waiting for TCP.
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

// countGathered counts packets whose writers were told that they are sent.
func (c *counters) countGathered(n int, err error) {
	c.count(n, err)
	if err != nil {
		c.refused.Add(1)
	}
}

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

// Stats count since New.
type Stats struct {
	Packets uint64
	Bytes   uint64 // without IP, UDP and TCP headers
	Calls   uint64
	Errors  uint64 // refused by the kernel
	Refused uint64 // gathered ones among these
	Dropped uint64 // by slow TCP connections
}

// Stats reads the counters.
func (c *Conn) Stats() Stats {
	return Stats{
		Packets: c.packets.Load(), Bytes: c.bytes.Load(), Calls: c.calls.Load(), Errors: c.errors.Load(), Refused: c.refused.Load(),
		Dropped: c.dropped.Load(),
	}
}
