package egress

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/connlimit"
)

const (
	// defaultStrangerTime is how long a TCP connection may take until Admit: browsers check at once.
	defaultStrangerTime = 10 * time.Second
	// defaultWriteTime is how long the kernel may take for one block: 13 kbit/s carry no call.
	defaultWriteTime = 10 * time.Second
)

// Stream is one TCP connection of a client. Writing to it never waits: what it does not take in time is left out, whole frames of pictures
// first, and where even sound has no room, or the kernel takes nothing for 10 s, the connection is closed. Its methods are safe for concurrent use.
type Stream struct {
	of       *streams
	conn     *net.TCPConn
	pending  *connlimit.Pending
	admitted atomic.Bool
	wake     chan struct{} // capacity 1
	ended    chan struct{} // closed by Close

	mu      sync.Mutex // guards the fields below
	backlog backlog
	writing bool // there is a goroutine that writes
	closed  bool
}

// Admit says that a client has shown who it is: its connection lasts until Close.
func (s *Stream) Admit() {
	if !s.admitted.CompareAndSwap(false, true) {
		return
	}
	s.pending.Done()
	_ = s.conn.SetReadDeadline(time.Time{}) // It fails only when the connection is closed.
}

// Close ends the connection. What it has not written yet is lost.
func (s *Stream) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
}

// close needs mu.
func (s *Stream) close() {
	if s.closed {
		return
	}
	s.closed = true
	close(s.ended)
	s.pending.Done()
	_ = s.conn.SetLinger(0) // The kernel shall not keep for long what nobody takes.
	s.conn.Close()
}

// Dropped is how many packets were left out so far.
func (s *Stream) Dropped() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.backlog.dropped
}

// put is for one packet.
func (s *Stream) put(frame Frame, packet []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	s.take(frame, packet, time.Now())
	s.rouse()
	return nil
}

// putFlow is for the packets of one destination in a batch.
func (s *Stream) putFlow(q *queue, f *flow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for i, more := f.first, true; more && !s.closed; i, more = q.packets[i].next, q.packets[i].next != 0 {
		s.take(q.packets[i].frame, q.payload(i), now)
	}
	s.rouse()
}

// take needs mu.
func (s *Stream) take(frame Frame, packet []byte, now time.Time) {
	before := s.backlog.dropped
	if !s.backlog.put(frame, packet, now) {
		s.close()
	}
	s.of.counters.dropped.Add(s.backlog.dropped - before)
}

// rouse has what waits written. It needs mu.
func (s *Stream) rouse() {
	if s.closed || len(s.backlog.blocks) == 0 {
		return
	}
	if !s.writing {
		s.writing = true
		s.of.writing.Go(s.write)
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// write writes what waits, until Close.
func (s *Stream) write() {
	defer s.Close()
	for {
		s.mu.Lock()
		next := s.backlog.take()
		closed := s.closed
		s.mu.Unlock()
		if closed {
			return
		}
		if next == nil {
			select {
			case <-s.wake:
			case <-s.ended:
			}
			continue
		}
		_ = s.conn.SetWriteDeadline(time.Now().Add(s.of.writeTime)) // It fails only when the connection is closed, as Write does.
		_, err := s.conn.Write(next.bytes)
		s.of.counters.wrote(next, err)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.backlog.done()
		s.mu.Unlock()
	}
}

// read gives take every packet of the connection until it ends.
func (s *Stream) read(take func([]byte)) {
	defer s.Close()
	_ = s.conn.SetReadDeadline(time.Now().Add(s.of.strangerTime))
	packets := newUnframer(s.conn)
	for {
		packet, err := packets.next()
		if err != nil {
			return
		}
		take(packet)
		switch {
		case s.admitted.Load():
			packets.grow()
		case packets.total > strangerBytes:
			return
		}
	}
}
