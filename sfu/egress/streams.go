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
	// strangers and strangersOfOne bound the TCP connections that have not authenticated themselves, in all and per address.
	// A new connection beyond a bound drops the oldest.
	strangers, strangersOfOne = 1024, 128
	// refusedPause is the pause after the kernel has refused to accept a connection.
	refusedPause = 100 * time.Millisecond
	// unsentBytes bounds what waits unsent in the kernel. What waits in the backlog can still be left out.
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

// receive accepts connections until close, and returns when the goroutines of all connections have ended.
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
