package peer

import (
	"encoding/binary"
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/stun/v4"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/sfu/transport"
)

// standsBy has a place stand by for a connection of the node. With a priority the place finds the client; else the answer named it.
func (p *place) standsBy(t *testing.T, n *node, priority uint32) *transport.Held {
	t.Helper()
	n.conn.Reverse()
	testkit.Eventually(t, "the client is the controlled end", n.conn.Reversed)
	known := n.conn.Secrets()
	held, ok := p.Hold(known.Ours, known.Theirs)
	if !ok {
		t.Fatal("the place has the client already")
	}
	if priority != 0 {
		held.Find(known.At, priority)
	}
	held.Answer(true)
	testkit.Eventually(t, "the client has shown itself to the standby", held.Seen)
	return held
}

// goesOn moves a connection of the node here, as after the death of its place.
func (p *place) goesOn(t *testing.T, n *node, held *transport.Held) *node {
	t.Helper()
	next, known := p.node(n.codec), n.conn.Secrets()
	known.Numbers = known.Numbers.Ahead()
	conn, err := p.Continue(transport.Config{Handler: next, Owner: "peer", Log: slog.New(slog.DiscardHandler)}, known, held)
	if err != nil {
		t.Fatal(err)
	}
	next.has(t, conn)
	conn.Begin()
	return next
}

func (n *node) sends(t *testing.T, number uint16) {
	t.Helper()
	if _, err := n.WriteRTP(&rtp.Header{Version: 2, SSRC: 100, PayloadType: opusType, SequenceNumber: number}, []byte("sound")); err != nil {
		t.Fatal(err)
	}
}

// TestAConnectionFollowsItsStandby to a node that the answer names, and to the next one, which it learns of by a check; but not before
// that node's nomination, nor back.
func TestAConnectionFollowsItsStandby(t *testing.T) {
	t.Parallel()
	stack, err := NewStack(VideoLight)
	if err != nil {
		t.Fatal(err)
	}
	opts, c := connectionOf(t, stack)
	heard, hops := make(chan arrival, 16), make(chan int, 16)
	reached := func(s Step, hop int) { hops <- hop }
	first, second, third := listen(t), listen(t), listen(t)
	n := first.dial(t, opts, c, func(a arrival) { heard <- a }, reached, second.at)
	<-hops // ICE
	<-hops // DTLS
	for i, next := range []*place{second, third} {
		was := *c.out.to.Load()
		held := next.standsBy(t, n, uint32(i)*(hostPriority+1))
		n.sends(t, uint16(1+i*20_000))
		if a := <-heard; a.hop != i || *c.out.to.Load() != was || len(hops) > 0 {
			t.Fatalf("%+v arrived, and the connection goes to %s, before %s has nominated itself", a, c.out.to.Load(), next.at)
		}
		n = next.goesOn(t, n, held)
		if hop := <-hops; hop != i+1 || *c.out.to.Load() != next.at {
			t.Errorf("hop %d to %s, want %d to %s", hop, c.out.to.Load(), i+1, next.at)
		}
		n.sends(t, uint16((i+1)*20_000))
		if a := <-heard; a.hop != i+1 {
			t.Errorf("%+v arrived of hop %d", a, i+1)
		}
		n.until(t, "what is sent arrives at the standby", func() bool {
			return c.microphone.write(0, false, 0, []byte("sound")) && len(n.packets[c.microphone.ssrc]) > 0
		})
	}
	if c.stuck() {
		t.Error("the connection counts as stuck")
	}
}

// TestWhatANominationMoves: a pair that both browsers would take.
func TestWhatANominationMoves(t *testing.T) {
	const used = 100
	here, there := netip.MustParseAddrPort("127.0.0.1:7000"), netip.MustParseAddrPort("127.0.0.1:7001")
	for name, test := range map[string]struct {
		role     stun.AttrType
		answered bool
		priority uint32
		nominate bool
		moves    bool
	}{
		"a better pair that has answered":                   {stun.AttrICEControlling, true, used + 1, true, true},
		"one that the node does not nominate":               {stun.AttrICEControlling, true, used + 1, false, false},
		"one that has not answered":                         {stun.AttrICEControlling, false, used + 1, true, false},
		"one of the same priority, which Firefox refuses":   {stun.AttrICEControlling, true, used, true, false},
		"a worse one, as of a former node that wakes up":    {stun.AttrICEControlling, true, used - 1, true, false},
		"a better one that answers before the roles change": {stun.AttrICEControlled, true, used + 1, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := newConnection("1", nil, Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.close)
			c.remote, c.reached = &answer{}, func(Step, int) {}
			k := &c.checks
			k.pairs = []*pair{newPair(here, used)}
			c.answered(k.pairs[0], time.Now())
			check := []stun.Setter{stun.BindingRequest, stun.RawAttribute{Type: test.role, Value: make([]byte, 8)}, stun.RawAttribute{Type: stun.AttrPriority, Value: binary.BigEndian.AppendUint32(nil, test.priority)}}
			if test.nominate {
				check = append(check, stun.RawAttribute{Type: stun.AttrUseCandidate})
			}
			if test.answered {
				k.pairs = append(k.pairs, &pair{at: there, priority: test.priority, answered: true})
			}
			if err := k.request.Build(check...); err != nil {
				t.Fatal(err)
			}
			c.checked(there, time.Now())
			if moved := *c.out.to.Load() == there; moved != test.moves {
				t.Errorf("moved: %t, want %t", moved, test.moves)
			}
		})
	}
}
