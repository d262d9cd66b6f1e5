package egress

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

// tcpNode is a Conn that takes TCP, and what came of its connections.
type tcpNode struct {
	*Conn

	mu   sync.Mutex
	came map[Address][]string
	gone map[Address]bool
}

// listenTCP runs one until the test ends. edit changes it before.
func listenTCP(t testing.TB, edit func(*streams)) *tcpNode {
	t.Helper()
	listener, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	n := &tcpNode{Conn: New(Options{Gather: true, Segment: true, Streams: listener}, listen(t, "udp4")), came: map[Address][]string{}, gone: map[Address]bool{}}
	edit(n.streams)
	ended := make(chan error, 1)
	go func() { ended <- n.Receive(n.Readers()-1, n.take, n.forget) }()
	t.Cleanup(func() {
		_ = n.Close() // The UDP socket is closed once more.
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("it ended with %v", err)
		}
		for address := range n.came {
			if !n.gone[address] {
				t.Errorf("nothing was said of the end of %v", address)
			}
		}
	})
	return n
}

func asIs(*streams) {}

func (n *tcpNode) take(b []byte, from Address) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.came[from] = append(n.came[from], string(b))
	if bytes.HasPrefix(b, []byte("check")) {
		from.Stream.Admit()
	}
}

func (n *tcpNode) forget(from Address) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gone[from] = true
}

func (n *tcpNode) dial(t testing.TB) *net.TCPConn {
	t.Helper()
	conn, err := net.DialTCP("tcp4", nil, n.streams.listener.Addr().(*net.TCPAddr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// dialKnown gives a connection that has shown itself, and the node's end of it.
func (n *tcpNode) dialKnown(t testing.TB) (*net.TCPConn, Address) {
	t.Helper()
	conn := n.dial(t)
	if _, err := conn.Write(framed([]byte("check"))); err != nil {
		t.Fatal(err)
	}
	var at Address
	testkit.Eventually(t, "the check has come", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		for from := range n.came {
			if from.AddrPort == conn.LocalAddr().(*net.TCPAddr).AddrPort() {
				at = from
			}
		}
		return at.Stream != nil
	})
	return conn, at
}

// ends waits until the node has closed a connection.
func ends(t testing.TB, conn *net.TCPConn) {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("the connection is open still")
	}
}

func TestPacketsGoBothWaysByTCP(t *testing.T) {
	n := listenTCP(t, asIs)
	conn, at := n.dialKnown(t)
	batch := n.NewBatch()
	batch.Begin()
	var want [][]byte
	for i := range 100 {
		want = append(want, bytes.Repeat([]byte{byte(i)}, 1000))
		if _, err := put(batch, want[i], at); err != nil {
			t.Fatal(err)
		}
	}
	batch.End()
	if _, err := n.Write([]byte("at once"), at); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	got := newUnframer(conn)
	for i, packet := range append(want, []byte("at once")) {
		if b, err := got.next(); err != nil || !bytes.Equal(b, packet) {
			t.Fatalf("packet %d has %d bytes, want %d (%v)", i, len(b), len(packet), err)
		}
	}
	testkit.Eventually(t, "all is counted", func() bool { s := n.Stats(); return s.Packets == 101 && s.Bytes == 100*1002+9 })
	conn.Close()
	testkit.Eventually(t, "the end is told", func() bool { n.mu.Lock(); defer n.mu.Unlock(); return n.gone[at] })
	if _, err := n.Write([]byte("late"), at); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a write to a connection that has ended gives %v", err)
	}
}

// TestAStalledClientIsBounded, nobody waits for it, and the client beside it, in the same batches, loses nothing.
func TestAStalledClientIsBounded(t *testing.T) {
	const rounds, frame = 2000, 10
	n := listenTCP(t, asIs)
	stalled, at := n.dialKnown(t)
	_ = stalled.SetReadBuffer(4096)
	beside := listen(t, "udp4")
	_ = beside.SetReadBuffer(4 << 20)
	batch := n.NewBatch()
	longest, packet := time.Duration(0), make([]byte, 1100)
	for round := range uint32(rounds) {
		began := time.Now()
		batch.Begin()
		for i := range frame {
			packet[0], packet[1], packet[2] = byte(round>>8), byte(round), byte(i)
			copy(batch.Space(len(packet)), packet)
			if err := batch.Put(len(packet), at, FrameOf(7, round)); err != nil {
				t.Fatal(err)
			}
			if _, err := put(batch, packet, to(beside)); err != nil {
				t.Fatal(err)
			}
		}
		batch.End()
		longest = max(longest, time.Since(began))
		for i := range frame {
			if got := read(t, beside, time.Minute); len(got) != len(packet) || got[0] != byte(round>>8) || got[1] != byte(round) || got[2] != byte(i) {
				t.Fatalf("round %d: packet %d beside the stalled client is missing", round, i)
			}
		}
	}
	at.Stream.mu.Lock()
	waiting := at.Stream.backlog.waiting
	at.Stream.mu.Unlock()
	t.Logf("%d bytes of %d wait, %d packets were left out, a batch took %v at most", waiting, rounds*frame*len(packet), at.Stream.Dropped(), longest)
	if waiting > backlogBytes || at.Stream.Dropped() == 0 || n.Stats().Dropped != at.Stream.Dropped() {
		t.Errorf("%d bytes wait for a client that reads nothing; %d packets were left out", waiting, at.Stream.Dropped())
	}
	for range 2 * backlogBytes / len(packet) { // What must be kept has no room in the end.
		_, _ = n.Write(packet, at)
	}
	if _, err := n.Write(packet, at); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a write past the bound gives %v", err)
	}
	testkit.Eventually(t, "the end is told", func() bool { n.mu.Lock(); defer n.mu.Unlock(); return n.gone[at] })
}

// TestAClientThatTakesNothingIsGivenUp: the kernel takes no more, and after some time nobody waits for it.
func TestAClientThatTakesNothingIsGivenUp(t *testing.T) {
	n := listenTCP(t, func(s *streams) { s.writeTime = 50 * time.Millisecond })
	_, at := n.dialKnown(t)
	testkit.Eventually(t, "the connection is closed", func() bool {
		for range 100 {
			if _, err := n.Write(make([]byte, 100), at); err != nil {
				return true
			}
		}
		return false
	})
}

// TestStrangersAreBounded in bytes, in time, in number, and in what they may send.
func TestStrangersAreBounded(t *testing.T) {
	t.Run("bytes", func(t *testing.T) {
		n := listenTCP(t, asIs)
		conn := n.dial(t)
		go func() {
			for range 100 {
				_, _ = conn.Write(framed(make([]byte, 1000)))
			}
		}()
		ends(t, conn)
	})
	t.Run("a long packet", func(t *testing.T) {
		n := listenTCP(t, asIs)
		conn := n.dial(t)
		_, _ = conn.Write([]byte("GET / HTTP/1.1\r\n"))
		ends(t, conn)
	})
	t.Run("time", func(t *testing.T) {
		n := listenTCP(t, func(s *streams) { s.strangerTime = 100 * time.Millisecond })
		conn := n.dial(t)
		_, _ = conn.Write(framed([]byte("noise")))
		ends(t, conn)
	})
	t.Run("number", func(t *testing.T) {
		n := listenTCP(t, asIs)
		known, at := n.dialKnown(t)
		first := n.dial(t)
		for range strangersOfOne {
			n.dial(t)
		}
		ends(t, first)
		if _, err := n.Write([]byte("still"), at); err != nil {
			t.Fatal(err)
		}
		_ = known.SetReadDeadline(time.Now().Add(time.Minute))
		if got, err := newUnframer(known).next(); string(got) != "still" {
			t.Errorf("a client beside them gets %q (%v)", got, err)
		}
		if now, _ := n.streams.limiter.Count(); now > strangersOfOne {
			t.Errorf("%d wait of one address", now)
		}
	})
}
