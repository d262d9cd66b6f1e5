package egress

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/connlimit"
)

const (
	// TCP connections that have shown nothing, in all and of one address; a new one drops the oldest.
	strangers, strangersOfOne = 1024, 128
	// After the kernel refused to accept.
	refusedPause = 100 * time.Millisecond
	// In the kernel; the rest can still be left out.
	unsentBytes = 32 << 10
)

type streams struct {
	listener                *net.TCPListener
	limiter                 *connlimit.Limiter
	spare                   *sync.Pool
	counters                *counters
	strangerTime, writeTime time.Duration

	ended   chan struct{}
	writing sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	all    map[*Stream]struct{}
	closed bool
}

func newStreams(listener *net.TCPListener, counters *counters) *streams {
	return &streams{
		listener: listener, limiter: connlimit.New(connlimit.Limits{Total: strangers, PerAddress: strangersOfOne}), spare: newBlocks(),
		counters: counters, strangerTime: defaultStrangerTime, writeTime: defaultWriteTime, ended: make(chan struct{}), all: map[*Stream]struct{}{},
	}
}

// receive returns after all connections.
func (s *streams) receive(take func([]byte, Address), gone func(Address)) error {
	defer s.writing.Wait()
	defer s.close()
	var reading sync.WaitGroup
	defer reading.Wait()
	for {
		conn, err := s.listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return err
		}
		if err != nil {
			select {
			case <-time.After(refusedPause):
				continue
			case <-s.ended:
				return net.ErrClosed
			}
		}
		address, ok := s.add(conn)
		if !ok {
			return net.ErrClosed
		}
		reading.Go(func() {
			address.Stream.read(func(b []byte) { take(b, address) })
			s.forget(address.Stream)
			gone(address)
		})
	}
}

func (s *streams) add(conn *net.TCPConn) (Address, bool) {
	keepLittle(conn)
	stream := &Stream{of: s, conn: conn, wake: make(chan struct{}, 1), ended: make(chan struct{}), backlog: backlog{spare: s.spare}}
	stream.pending = s.limiter.Add(conn.RemoteAddr(), func() { conn.Close() }) // ends the reader, which closes the stream
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		stream.Close()
		return Address{}, false
	}
	s.all[stream] = struct{}{}
	remote, _ := conn.RemoteAddr().(*net.TCPAddr)
	from := remote.AddrPort()
	return Address{AddrPort: netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), Stream: stream}, true
}

func (s *streams) forget(stream *Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, stream)
}

func (s *streams) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	close(s.ended)
	s.listener.Close()
	for stream := range s.all {
		stream.Close()
	}
}
