package egress

import (
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/connlimit"
)

const (
	// defaultStrangerTime is how long a client may take until Admit.
	defaultStrangerTime = 10 * time.Second
	// defaultWriteTime is how long the kernel may take to accept one block.
	defaultWriteTime = 10 * time.Second
)

// Stream is a client's TCP connection. Writing never waits: late frames are left out whole. Without room for sound, or
// after 10 s without progress, it is closed. It is safe for concurrent use.
type Stream struct {
	of       *streams
	conn     *net.TCPConn
	pending  *connlimit.Pending
	admitted atomic.Bool
	wake     chan struct{}
	ended    chan struct{}

	mu      sync.Mutex // guards the fields below
	backlog backlog
	writing bool
	closed  bool
}

// Admit is called when the client has authenticated itself. The connection then has no deadline for reading and no limit as a stranger.
func (s *Stream) Admit() {
	if !s.admitted.CompareAndSwap(false, true) {
		return
	}
	s.pending.Done()
	_ = s.conn.SetReadDeadline(time.Time{})
}

// Close closes the connection at once and drops what is not yet sent.
func (s *Stream) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
}

// close does the work of Close. The caller holds mu.
func (s *Stream) close() {
	if s.closed {
		return
	}
	s.closed = true
	close(s.ended)
	s.pending.Done()
	_ = s.conn.SetLinger(0) // the kernel keeps nothing unsent
	s.conn.Close()
}

// Dropped returns how many packets were left out because the connection was too slow.
func (s *Stream) Dropped() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.backlog.dropped
}

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

func (s *Stream) putFlow(q *queue, f *flow) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for i, more := f.first, true; more && !s.closed; i, more = q.packets[i].next, q.packets[i].next != 0 {
		s.take(q.packets[i].frame, q.payload(i), now)
	}
	s.rouse()
}

// take puts a packet into the backlog and closes the stream if a packet that must be kept has no room. The caller holds mu.
func (s *Stream) take(frame Frame, packet []byte, now time.Time) {
	before := s.backlog.dropped
	if !s.backlog.put(frame, packet, now) {
		s.close()
	}
	s.of.counters.dropped.Add(s.backlog.dropped - before)
}

// rouse wakes the writing goroutine, and starts it on the first packet. The caller holds mu.
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
		_ = s.conn.SetWriteDeadline(time.Now().Add(s.of.writeTime))
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
