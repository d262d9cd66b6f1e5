package signaling

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// from dials as somebody behind a proxy of this machine.
func (e *signalingNode) from(address string) *client {
	e.rig.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), generous)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+e.addr+"/ws", &websocket.DialOptions{
		Subprotocols: []string{wire.Subprotocol}, HTTPHeader: map[string][]string{"X-Forwarded-For": {"203.0.113.99, " + address}},
	})
	if err != nil {
		e.rig.t.Fatal(err)
	}
	e.rig.t.Cleanup(func() { _ = conn.CloseNow() })
	return &client{t: e.rig.t, conn: conn}
}

// tokenOf is a token of another API key than the rig's first.
func (r *rig) tokenOf(key, room, name string) string {
	r.t.Helper()
	token, err := r.keys.Mint(key, access.Everything(strings.ToLower(name), pinRoom(room)), time.Hour)
	if err != nil {
		r.t.Fatal(err)
	}
	return token
}

// refused is the sentence with which a join is refused.
func (c *client) refused(token string) string {
	c.t.Helper()
	c.say(&wire.Join{Token: token})
	fault := hear[*wire.Error](c)
	if fault.Code != wire.CodeTooManySockets || !fault.Retryable || fault.RetryAfterMs == 0 {
		c.t.Fatalf("heard %+v", fault)
	}
	if code, _ := c.closed(); code != websocket.StatusTryAgainLater {
		c.t.Fatalf("closed with %v", code)
	}
	return fault.Message
}

// TestQuotasHoldAcrossRooms: who spends the quota of an identity, a key or an address is held
// back in every room, and nobody else is.
func TestQuotasHoldAcrossRooms(t *testing.T) {
	const otherKey = "APIother"
	few := limits.Quota{Joins: limits.Rate{PerSecond: 0.001, Burst: 3}}
	for name, tc := range map[string]struct {
		quotas        limits.Quotas
		attack, other func(r *rig, e *signalingNode, room string) (*client, string) // dials, and gives a token
	}{
		"identity": {
			limits.Quotas{Identity: few},
			func(r *rig, e *signalingNode, room string) (*client, string) { return e.dial(), r.token(room, "Eve") },
			func(r *rig, e *signalingNode, room string) (*client, string) {
				return e.dial(), r.tokenOf(otherKey, room, "Eve")
			},
		},
		"API key": {
			limits.Quotas{Key: few},
			func(r *rig, e *signalingNode, room string) (*client, string) {
				return e.dial(), r.token(room, "eve-"+room)
			},
			func(r *rig, e *signalingNode, room string) (*client, string) {
				return e.dial(), r.tokenOf(otherKey, room, "Ada")
			},
		},
		"address": {
			limits.Quotas{Address: few},
			func(r *rig, e *signalingNode, room string) (*client, string) {
				return e.from("198.51.100.7"), r.token(room, "eve-"+room)
			},
			func(r *rig, e *signalingNode, room string) (*client, string) {
				return e.from("198.51.100.8"), r.token(room, "Ada")
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			keys, err := access.ParseKeyring(apiKey + ":" + apiSecret + "," + otherKey + ":" + apiSecret)
			if err != nil {
				t.Fatal(err)
			}
			r.keys = keys
			recorder, facts := testkit.Recorded(t)
			r.prepare = func(s *Server) { s.parts.Recorder = recorder }
			n := r.node("sfu-1")
			e := r.signalingNode(func(c *Config) {
				c.Limits.Quotas, c.TrustedProxies = tc.quotas, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
			})
			for i := range 6 {
				room := fmt.Sprintf("room-%d", i)
				r.placer.set(pinRoom(room), n.pin(firstEpoch))
				c, token := tc.attack(r, e, room)
				if i < 3 {
					c.say(&wire.Join{Token: token})
					hear[*wire.Joined](c)
					continue
				}
				if said := c.refused(token); said != "Too many joins of this "+name+". Wait a moment, then try again." {
					t.Fatalf("refused with %q", said)
				}
			}
			c, token := tc.other(r, e, "room-5")
			c.say(&wire.Join{Token: token})
			hear[*wire.Joined](c)
			want := string(e.config.Node) + " reached a limit (too many joins of one " + name + ")"
			if got := facts(); len(got) != 1 || got[0].Kind != events.LimitReached || got[0].Sentence() != want {
				t.Errorf("recorded: %+v, want %q", got, want)
			}
		})
	}
}

func TestSocketsOfOneIdentityAreCounted(t *testing.T) {
	r := newRig(t)
	n := r.node("sfu-1")
	for i := range 4 {
		r.placer.set(pinRoom(fmt.Sprint(i)), n.pin(firstEpoch))
	}
	e := r.signalingNode(func(c *Config) {
		c.Limits.Quotas = limits.Quotas{Identity: limits.Quota{Sockets: 2}, Key: limits.Quota{Sockets: 3}}
	})
	eve, _ := e.join("0", "Eve")
	e.join("1", "Eve")
	if said := e.dial().refused(r.token("2", "Eve")); !strings.HasPrefix(said, "Too many sockets of this identity.") {
		t.Fatalf("refused with %q", said)
	}
	e.join("3", "Ada")
	if said := e.dial().refused(r.token("3", "Grace")); !strings.HasPrefix(said, "Too many sockets of this API key.") {
		t.Fatalf("refused with %q", said)
	}
	eve.say(&wire.Leave{})
	eve.closed()
	testkit.Eventually(t, "end of her session", func() bool { return e.sockets.Load() == 2 })
	e.join("3", "Grace") // What was refused for the key's sake took none of the identity's.
}

// TestNewRoomsAreCounted: a quota of new rooms that is spent keeps nobody out of a room that stands.
func TestNewRoomsAreCounted(t *testing.T) {
	r := newRig(t)
	e := r.signalingNode(func(c *Config) {
		c.Limits.Quotas = limits.Quotas{Identity: limits.Quota{Rooms: limits.Rate{PerSecond: 0.001, Burst: 2}}}
	})
	for i := range 4 {
		n := r.node(ring.NodeID(fmt.Sprintf("sfu-%d", i))) // a node each, because a fake node has one roster
		r.placer.set(pinRoom(fmt.Sprint(i)), n.pin(firstEpoch))
	}
	e.join("0", "Grace")
	for range 3 {
		e.join("0", "Eve") // Grace is there.
	}
	e.join("1", "Eve")
	e.join("2", "Eve")
	if said := e.dial().refused(r.token("new", "Eve")); !strings.HasPrefix(said, "Too many new rooms of this identity.") {
		t.Fatalf("refused with %q", said)
	}
	e.join("3", "Eve") // The store knows it.
	e.join("1", "Grace")
}

// TestAStoreThatHangsLeavesTimeToJoin: whether a room stands is asked within the budget, and not for all of it.
func TestAStoreThatHangsLeavesTimeToJoin(t *testing.T) {
	const budget = 8 * time.Second
	within := func(t *testing.T, join func()) {
		t.Helper()
		before := time.Now()
		if join(); time.Since(before) >= budget {
			t.Errorf("that took %v, and a client waits for 12 s", time.Since(before))
		}
	}
	t.Run("beyond a quota", func(t *testing.T) {
		r, _, e := lobbyWith(t, func(c *Config) {
			c.JoinBudget, c.Limits.Quotas = budget, limits.Quotas{Identity: limits.Quota{Rooms: limits.Rate{PerSecond: 0.001, Burst: 1}}}
		})
		r.placer.set("other", r.node("sfu-2").pin(firstEpoch))
		e.join("lobby", "Eve")
		r.placer.hang()
		within(t, func() { e.join("other", "Eve") })
	})
	t.Run("a resume that may open no room", func(t *testing.T) {
		r, _, e := lobby(t)
		_, joined := e.join("lobby", "Ada")
		other := r.signalingNode(func(c *Config) { c.JoinBudget, c.DemandRoomCreate = budget, true })
		r.placer.hang()
		within(t, func() { other.resume(joined.Resume, 2) })
	})
}

func TestOffersOfOneIdentityAreCounted(t *testing.T) {
	_, _, e := lobbyWith(t, func(c *Config) {
		c.Limits.Quotas = limits.Quotas{Identity: limits.Quota{Offers: limits.Rate{PerSecond: 0.001, Burst: 2}}}
	})
	for i := range 4 {
		c, _ := e.join("lobby", "Eve")
		c.offer(fmt.Sprintf("o-%d", i), true)
		if i < 2 {
			hear[*wire.Answer](c)
		} else if m := hear[*wire.OfferRejected](c); m.Code != wire.CodeTooManyMessages {
			t.Fatalf("heard %+v", m)
		}
		c.say(&wire.Leave{})
		c.closed()
	}
	ada, _ := e.join("lobby", "Ada")
	ada.offer("o-1", true)
	hear[*wire.Answer](ada)
}

// TestChatIsPacedByPerson: a second tab brings no second pace.
func TestChatIsPacedByPerson(t *testing.T) {
	_, n, e := lobbyWith(t, func(c *Config) { c.MessageBurst = 1000 })
	var tabs []*client
	for range 4 {
		tab, _ := e.join("lobby", "Eve")
		tabs = append(tabs, tab)
	}
	ada, _ := e.join("lobby", "Ada")
	for range 2 * limits.ChatBurst {
		for _, tab := range tabs {
			tab.say(&wire.Say{Text: "eve's"})
		}
	}
	for _, tab := range tabs {
		tab.say(&wire.Mute{Source: wire.SourceScreen, Muted: true}) // after all she said
	}
	ada.say(&wire.Say{Text: "ada's"})
	testkit.Eventually(t, "word of all that", func() bool {
		said := n.said()
		return strings.Count(said, "mutes") == len(tabs) && strings.Contains(said, "ada's")
	})
	if told := strings.Count(n.said(), "eve's"); told < limits.ChatBurst || told >= 4*limits.ChatBurst {
		t.Errorf("%d of her %d lines were passed on, want %d and few more", told, 8*limits.ChatBurst, limits.ChatBurst)
	}
}
