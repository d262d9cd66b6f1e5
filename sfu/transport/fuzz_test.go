package transport

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/pion/stun/v4"

	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

// FuzzReceive: nothing that comes to the socket, from whom it may, does harm. Who it comes from is nobody, a client, or another media node.
func FuzzReceive(f *testing.F) {
	transport, w := newTransport(f)
	c := newClient(f, transport, w, "alice")
	node := egress.UDP(netip.MustParseAddrPort("198.51.100.2:7982"))
	link, seeds := keyedFor(f, transport, w, node)
	sources := []egress.Address{egress.UDP(netip.MustParseAddrPort("198.51.100.1:9")), c.from, node}
	seeds = append(seeds, checkFor(f, c.conn.Credentials(), true),
		[]byte{22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0},
		[]byte{0x80, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
		[]byte{0x81, 200, 0, 1, 0, 0, 0, 1})
	for _, seed := range seeds {
		for from := range sources {
			f.Add(seed, uint8(from))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, from uint8) {
		c.conn.heardFrom(c.from, time.Now()) // Nobody shall take its silence for a fault.
		link.conn.heardFrom(node, time.Now())
		if len(b) > 0 {
			transport.receive(b, sources[int(from)%len(sources)], time.Now())
		}
		if n := transport.panics.Count(); n > 0 {
			t.Fatal("the reading of it panics")
		}
		if c.got.state() == Failed || link.got.state() == Failed {
			t.Fatal("bytes that nobody authenticated ended a connection")
		}
		if transport.at(node) != link.conn {
			t.Fatal("a media node has lost its address")
		}
	})
}

// keyedFor is a keyed connection of a fuzzed transport, up with an end that nobody runs, and a sealed packet and a report of that end.
func keyedFor(f *testing.F, transport *Transport, w *wire, at egress.Address) (link *trunk, packets [][]byte) {
	f.Helper()
	ours, theirs := NewKeys()
	link = (&mediaNode{t: f, transport: transport, socket: w}).open("b", ours)
	sealed := make(chan []byte, 2)
	far := New(sink{w, sealed}, transport.panics, transport.log) // It need not run.
	other := (&mediaNode{t: f, transport: far, socket: far.socket}).open("a", theirs)
	other.conn.selected.Store(&at)
	other.send(7, 1)
	other.report(7)
	transport.claim(link.conn, at)
	link.conn.dials(at, Credentials{Ufrag: "theirs", Password: theirPassword}, func() {})
	answer, err := stun.Build(stun.NewTransactionIDSetter(link.conn.keyed.check.id), stun.BindingSuccess, stun.NewShortTermIntegrity(theirPassword), stun.Fingerprint)
	if err != nil {
		f.Fatal(err)
	}
	transport.receive(answer.Raw, at, time.Now())
	if !link.conn.up {
		f.Fatal("the keyed connection is not up")
	}
	return link, [][]byte{checkFor(f, link.conn.Credentials(), false), answer.Raw, <-sealed, <-sealed}
}

// sink keeps what is sent.
type sink struct {
	Socket

	sent chan []byte
}

func (s sink) Write(b []byte, _ egress.Address) (int, error) {
	s.sent <- slices.Clone(b)
	return len(b), nil
}
