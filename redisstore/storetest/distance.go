package storetest

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// In reads, of one direction of a connection. Past it the sender waits.
const maxHeld = 1024

// Distance is a relay that makes a server as far away as a test wants.
type Distance struct {
	Address string
	oneWay  atomic.Int64 // nanoseconds
}

// Away puts a relay in front of address, at first without delay. Connections are accepted at once.
func Away(t testing.TB, address string) *Distance {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &Distance{Address: listener.Addr().String()}
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		conns []net.Conn
	)
	all.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", address)
			if err != nil {
				_ = near.Close()
				continue
			}
			mu.Lock()
			conns = append(conns, near, far)
			mu.Unlock()
			all.Go(func() { d.pass(near, far) })
			all.Go(func() { d.pass(far, near) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return d
}

// SetRoundTrip says how long answers take from now on.
func (d *Distance) SetRoundTrip(trip time.Duration) { d.oneWay.Store(int64(trip / 2)) }

type held struct {
	due  time.Time
	text []byte
}

// pass passes on in one direction, in order, until either end closes.
func (d *Distance) pass(from io.ReadCloser, to io.WriteCloser) {
	queue := make(chan held, maxHeld)
	var sending sync.WaitGroup
	sending.Go(func() {
		for h := range queue {
			if wait := time.Until(h.due); wait > 0 {
				<-time.After(wait)
			}
			_, _ = to.Write(h.text) // when it is closed both directions end
		}
		_ = to.Close()
	})
	for {
		buffer := make([]byte, 64<<10)
		n, err := from.Read(buffer)
		if n > 0 {
			queue <- held{time.Now().Add(time.Duration(d.oneWay.Load())), buffer[:n]}
		}
		if err != nil {
			break
		}
	}
	close(queue)
	_ = from.Close()
	sending.Wait()
}
