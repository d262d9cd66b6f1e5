package attack

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// dial opens a TCP connection to the signaling node, which is closed when the test ends.
func (s *stage) dial(ctx context.Context) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(s.url, "http://"))
	if err == nil {
		s.t.Cleanup(func() { conn.Close() })
	}
	return conn, err
}

// TestTenThousandSockets opens WebSockets that never say join, without ever closing one. The node keeps those
// who came last, and people get in between them.
func TestTenThousandSockets(t *testing.T) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		t.Fatal(err)
	}
	sockets := min(10_000, int(min(files.Cur, 1<<20))-1000)
	s := newStage(t)
	before := s.memory("signaling-1")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	upgrade := "GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: " + wire.Subprotocol + "\r\n\r\n"
	for i := range sockets {
		conn, err := s.dial(ctx)
		if err == nil {
			_, err = io.WriteString(conn, upgrade)
		}
		if err != nil {
			t.Fatalf("socket %d: %v", i, err)
		}
		if i%2000 == 1999 {
			s.newcomer(fmt.Sprint("newcomer-", i))
		}
	}
	s.newcomer("last")
	after := s.memory("signaling-1")
	t.Logf("%d sockets: %d MiB of memory before, %d after", sockets, before>>20, after>>20)
	if after-before > 150<<20 {
		t.Errorf("sockets that never join cost %d MiB", (after-before)>>20)
	}
	s.unharmed()
}

// TestSlowReaders has fifty people who read nothing and shout all the time. What waits for each is bounded, and they are cut
// off for it. The last few hear too little from each other to have much waiting.
func TestSlowReaders(t *testing.T) {
	const people, cut = 50, 40
	s := newStage(t)
	before := s.memory("signaling-1")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	small := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if tcp, ok := conn.(*net.TCPConn); ok {
			err = tcp.SetReadBuffer(4 << 10)
		}
		return conn, err
	}}
	defer small.CloseIdleConnections()
	line, err := wire.Encode(&wire.Say{Text: strings.Repeat("x", 2000)})
	if err != nil {
		t.Fatal(err)
	}
	var shouting sync.WaitGroup
	defer shouting.Wait()
	for i := range people {
		join, err := wire.Encode(&wire.Join{Token: s.token("shouters", fmt.Sprint("shouter-", i))})
		if err != nil {
			t.Fatal(err)
		}
		conn, _, err := websocket.Dial(ctx, strings.Replace(s.url, "http", "ws", 1)+"/ws", &websocket.DialOptions{
			Subprotocols: []string{wire.Subprotocol}, HTTPClient: &http.Client{Transport: small},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.CloseNow() })
		if err := conn.Write(ctx, websocket.MessageText, join); err != nil {
			t.Fatal(err)
		}
		shouting.Go(func() {
			tick := time.NewTicker(time.Second / 5)
			defer tick.Stop()
			for ctx.Err() == nil && conn.Write(ctx, websocket.MessageText, line) == nil {
				<-tick.C
			}
		})
	}
	s.eventually("most of them are cut off", func() error {
		said, err := s.cluster.Logs(ctx, "signaling-1")
		if n := strings.Count(said, "the client reads too slowly"); err == nil && n < cut {
			err = fmt.Errorf("%d of them so far", n)
		}
		return err
	})
	if after := s.memory("signaling-1"); after-before > 150<<20 {
		t.Errorf("they cost %d MiB", (after-before)>>20)
	}
	cancel()
	s.newcomer("newcomer")
	s.unharmed()
}

// TestSlowRequests sends the headers of requests byte by byte. Each connection is given up after 5 s.
func TestSlowRequests(t *testing.T) {
	t.Parallel() // most of it is waiting
	s := newStage(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var slow sync.WaitGroup
	for i := range 400 {
		conn, err := s.dial(ctx)
		if err != nil {
			t.Fatal(err)
		}
		slow.Go(func() {
			tick := time.NewTicker(200 * time.Millisecond)
			defer tick.Stop()
			for sent, text := 0, "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: "; ; sent++ {
				next := "x"
				if sent < len(text) {
					next = text[sent : sent+1]
				}
				if _, err := io.WriteString(conn, next); err != nil {
					return // given up
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
					t.Errorf("request %d is still waited for", i)
					return
				}
			}
		})
		if i%100 == 99 {
			s.newcomer(fmt.Sprint("newcomer-", i))
		}
	}
	slow.Wait()
	s.unharmed()
}
