package transport

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

// cable joins media nodes in a synctest bubble. It is a network that delivers at once.
type cable struct {
	t *testing.T

	mu    sync.Mutex // guards the fields below
	nodes map[egress.Address]*cableSocket
	cut   bool
	// outside has the address from which a node's packets come, and at which alone it is reached.
	outside map[egress.Address]egress.Address
	carried []carried
}

// carried is a packet that was put into the cable, whether or not it arrived.
type carried struct {
	datagram

	to egress.Address
}

type cableSocket struct {
	cable  *cable
	at     egress.Address
	in     chan datagram
	closed chan struct{}
}

func newCable(t *testing.T) *cable {
	return &cable{t: t, nodes: map[egress.Address]*cableSocket{}, outside: map[egress.Address]egress.Address{}}
}

func (s *cableSocket) Readers() int { return 1 }

func (s *cableSocket) Close() error { return nil }

func (s *cableSocket) Receive(_ int, take func([]byte, egress.Address), _ func(egress.Address)) error {
	for {
		select {
		case d := <-s.in:
			take(d.b, d.from)
		case <-s.closed:
			return net.ErrClosed
		}
	}
}

func (s *cableSocket) Write(b []byte, to egress.Address) (int, error) {
	c := s.cable
	c.mu.Lock()
	defer c.mu.Unlock()
	from := s.at
	if seen, masked := c.outside[from]; masked {
		from = seen
	}
	d := datagram{from: from, b: bytes.Clone(b)}
	c.carried = append(c.carried, carried{datagram: d, to: to})
	for at, node := range c.nodes {
		reached := at
		if seen, masked := c.outside[at]; masked {
			reached = seen
		}
		if reached == to && !c.cut {
			node.in <- datagram{from: from, b: bytes.Clone(b)}
		}
	}
	return len(b), nil
}

func (c *cable) setCut(cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = cut
}

// log returns what was carried to an address since the last call, and forgets everything.
func (c *cable) log(to egress.Address) (all []carried) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.carried {
		if p.to == to {
			all = append(all, p)
		}
	}
	c.carried = nil
	return all
}

// mediaNode is a media node's transport.
type mediaNode struct {
	t         testing.TB
	transport *Transport
	socket    Socket
	at        egress.Address
	stop      func()
}

func (c *cable) node(port uint16) *mediaNode {
	at := egress.UDP(netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), port))
	s := &cableSocket{cable: c, at: at, in: make(chan datagram, 1<<14), closed: make(chan struct{})}
	c.mu.Lock()
	c.nodes[at] = s
	c.mu.Unlock()
	return runNode(c.t, s, at, func() { close(s.closed) })
}

// runNode runs a transport until the test ends or stop is called.
func runNode(t testing.TB, s Socket, at egress.Address, closes func()) *mediaNode {
	n := &mediaNode{t: t, socket: s, at: at, transport: New(s, panics.New(), slog.New(slog.DiscardHandler))}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- n.transport.Run(ctx) }()
	n.stop = sync.OnceFunc(func() {
		cancel()
		closes()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(n.stop)
	return n
}

// trunk is one end of a keyed connection.
type trunk struct {
	node *mediaNode
	conn *Conn
	got  *recorder
}

func (n *mediaNode) open(owner string, keys Keys) *trunk {
	n.t.Helper()
	e := &trunk{node: n, got: &recorder{streams: map[uint32]int{}}}
	var err error
	if e.conn, err = n.transport.Open(Config{Handler: e.got, Owner: owner, Keys: keys, Log: slog.New(slog.DiscardHandler)}); err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(e.conn.Close)
	return e
}

// join opens both ends of a connection between two nodes, and dials neither.
func join(a, b *mediaNode) (atA, atB *trunk) {
	ours, theirs := NewKeys()
	return a.open("b", ours), b.open("a", theirs)
}

// dial returns the error of a Dial of the other end.
func (e *trunk) dial(other *trunk) error {
	return e.dialWith(other.node.at, other.conn.Credentials())
}

func (e *trunk) dialWith(to egress.Address, theirs Credentials) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return e.conn.Dial(ctx, to.AddrPort, theirs)
}

// up dials from both ends.
func up(t testing.TB, a, b *trunk) {
	t.Helper()
	for _, err := range []error{a.dial(b), b.dial(a)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// send sends one packet and returns its size, which is 0 if it was not sent.
func (e *trunk) send(ssrc uint32, sequence uint16) int {
	e.node.t.Helper()
	n, err := e.conn.Writer(&direct{socket: e.node.socket}, false).WriteRTP(
		&rtp.Header{Version: 2, SSRC: ssrc, SequenceNumber: sequence, PayloadType: 96}, []byte("frame"))
	if err != nil {
		e.node.t.Fatal(err)
	}
	return n
}

func (e *trunk) report(ssrc uint32) {
	e.node.t.Helper()
	if err := e.conn.WriteRTCP([]rtcp.Packet{&rtcp.PictureLossIndication{SenderSSRC: ssrc, MediaSSRC: 7}}); err != nil {
		e.node.t.Fatal(err)
	}
}

// heard returns how many packets of an SSRC were heard, and how many reports.
func (e *trunk) heard(ssrc uint32) (packets, reports int) {
	e.got.mu.Lock()
	defer e.got.mu.Unlock()
	return e.got.streams[ssrc], e.got.reports
}

// pass lets the bubble's clock go on.
func pass(d time.Duration) { <-time.After(d) }
