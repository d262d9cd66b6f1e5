package transport

import (
	"sync"
	"testing"
	"time"

	"github.com/pion/stun/v4"
	"github.com/pion/transport/v4/packetio"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

// TestAStepOfTheWallClockIsNoSilence: not forward, and backward it hides none.
func TestAStepOfTheWallClockIsNoSilence(t *testing.T) {
	transport, w := newTransport(t)
	c := newClient(t, transport, w, "alice")
	now := time.Now()
	if s := c.conn.present(testkit.WithWallMoved(t, now, time.Hour)); s != Connected {
		t.Errorf("a step forward makes a living connection %v", s)
	}
	if s := c.conn.present(testkit.WithWallMoved(t, now.Add(failedAfter+time.Second), -time.Hour)); s != Failed {
		t.Errorf("a step back makes a dead connection %v", s)
	}
}

// asked is a check among what has come to an address; nil: there is none.
func asked(t *testing.T, arriving *packetio.Buffer) (check *stun.Message) {
	t.Helper()
	for arriving.Count() > 0 {
		b := make([]byte, receiveBytes)
		n, err := arriving.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		if m := (&stun.Message{Raw: b[:n]}); m.Decode() == nil && m.Type == stun.BindingRequest {
			check = m
		}
	}
	return check
}

// TestMediaFollowsAClientThatDoesNotNominate: Firefox's checks from a new address of its NAT are only for consent. Media goes there when
// the address in use has been silent and the new one has answered.
func TestMediaFollowsAClientThatDoesNotNominate(t *testing.T) {
	transport, w := newTransport(t)
	c := newClient(t, transport, w, "alice")
	moved, arriving := w.address()
	third, elsewhere := w.address()
	defer arriving.Close()
	defer elsewhere.Close()
	consents := func(from egress.Address, at time.Time) {
		transport.receive(checkFor(t, c.conn.Credentials(), false), from, at)
	}
	begun := time.Now()
	for after := time.Duration(0); after < 3*disconnectedAfter; after += time.Second {
		consents(c.from, begun.Add(after))
		consents(moved, begun.Add(after))
	}
	if asked(t, arriving) != nil {
		t.Error("another address is checked while the one in use is heard")
	}
	now := begun.Add(3 * disconnectedAfter)
	var back *stun.Message
	for ; back == nil && now.Sub(begun) < 5*disconnectedAfter; now = now.Add(time.Second) {
		consents(moved, now)
		back = asked(t, arriving)
	}
	if back == nil {
		t.Fatal("the new address is not checked")
	}
	if to := c.conn.selected.Load(); *to != c.from {
		t.Errorf("media goes to %v, which has answered nothing", to)
	}
	answer, err := stun.Build(stun.NewTransactionIDSetter(back.TransactionID), stun.BindingSuccess, stun.NewShortTermIntegrity(theirPassword), stun.Fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	transport.receive(answer.Raw, moved, now)
	if to := c.conn.selected.Load(); *to != moved {
		t.Errorf("media goes to %v, want %v", to, moved)
	}
	if told := c.got.moved(); told != 1 {
		t.Errorf("told of %d moves, want 1", told)
	}
	if consents(third, now); asked(t, elsewhere) != nil {
		t.Error("a third address is checked although the second has just answered")
	}
}

// TestABusyRoomHoldsUpNoOtherConnection: who hears of a change may wait for a room that is stuck. Other rooms' clients are watched on, and
// what has changed meanwhile is told afterwards.
func TestABusyRoomHoldsUpNoOtherConnection(t *testing.T) {
	transport, w := newTransport(t)
	held, other := newClient(t, transport, w, "held"), newClient(t, transport, w, "other")
	free := make(chan struct{})
	release := sync.OnceFunc(func() { close(free) })
	defer release()
	held.got.mu.Lock()
	held.got.busy = free
	held.got.mu.Unlock()
	for _, c := range []*client{held, other} {
		silent := time.Now().Add(-disconnectedAfter)
		c.conn.heardFrom(c.from, silent)
		c.conn.heardFrom(egress.Address{}, silent)
		eventually(t, c.conn.cfg.Owner+"'s silence is told", func() bool { return c.got.state() == Disconnected })
	}
	release()
	eventually(t, "the client is back", func() bool {
		held.conn.heardFrom(held.from, time.Now())
		return held.got.state() == Connected
	})
}
