package signaling

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/redisstore"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/rest"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// users is what a signaling node needs of a store for presence.
type users interface {
	presence.LeaseStore
	rest.Users
	Follow(ctx context.Context, from [presence.Shards]presence.Cursor) (map[presence.Shard]presence.Diff, error)
}

var errNobody = errors.New("there is no store of users")

// nobody is a store that does not answer about users.
type nobody struct{}

func (nobody) Add(context.Context, []presence.Lease) error { return errNobody }

func (nobody) Renew(context.Context, []presence.Lease) ([]presence.Lease, error) {
	return nil, errNobody
}

func (nobody) Remove(context.Context, []presence.Lease) error { return errNobody }

func (nobody) Sweep(context.Context) error { return errNobody }

func (nobody) Ask(context.Context, []string) ([]presence.Status, error) { return nil, errNobody }

func (nobody) Count(context.Context) (int64, error) { return 0, errNobody }

func (nobody) List(context.Context, uint64) ([]presence.Status, uint64, error) {
	return nil, 0, errNobody
}

func (nobody) Follow(context.Context, [presence.Shards]presence.Cursor) (map[presence.Shard]presence.Diff, error) {
	return nil, errNobody
}

// quickly: on the busiest machine no lease lapses by itself.
func quickly() presence.Timing {
	return presence.Timing{TTL: time.Minute, Heartbeat: time.Second, Sweep: 500 * time.Millisecond, Poll: 100 * time.Millisecond}
}

// peopled is a rig with a store of users, whose memory is not young, and a media node for the lobby.
func peopled(t *testing.T) *rig {
	t.Helper()
	r, _ := peopledIn(t)
	return r
}

func peopledIn(t *testing.T) (*rig, storetest.Server) {
	t.Helper()
	r, server := newRig(t), storetest.Start(t, "miniredis")
	store, err := redisstore.Open(server.URL, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	r.users = store.Presence(quickly())
	if err := r.users.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, head := range server.Raw.Keys(t.Context(), "holdfast:presence:*:head").Val() {
		server.Raw.HSet(t.Context(), head, "from", 1)
	}
	r.placer.set("lobby", r.node("sfu-1").pin(firstEpoch))
	return r, server
}

// lapse has leases that nobody renews be due, until the user has so many.
func (e *signalingNode) lapse(server storetest.Server, left int, user, prefix string) {
	t := e.rig.t
	t.Helper()
	testkit.Eventually(t, "leases of "+user+" to lapse", func() bool {
		for _, leases := range server.Raw.Keys(t.Context(), "holdfast:presence:*:leases").Val() {
			for _, lease := range server.Raw.ZRange(t.Context(), leases, 0, -1).Val() {
				if strings.HasPrefix(lease, user+"\n"+prefix) {
					server.Raw.Do(t.Context(), "ZADD", leases, "XX", 1, lease)
				}
			}
		}
		_, answer := e.presence("?user=" + user)
		return answer.Users[0].Connections == left
	})
}

// connect begins a connection in no room.
func (e *signalingNode) connect(identity string, change func(*access.Grant)) *client {
	e.rig.t.Helper()
	grant := access.Grant{Identity: identity, CanWatch: true}
	if change != nil {
		change(&grant)
	}
	c := e.dial()
	c.say(&wire.Connect{Token: e.rig.mint(grant, time.Hour)})
	if got := hear[*wire.Connected](c); got.Identity != identity || got.Watch != grant.CanWatch {
		e.rig.t.Errorf("connected as %+v", got)
	}
	return c
}

// learns hears of one user, after "unknown" while the store is young.
func (c *client) learns(user string, want presence.State) wire.UserPresence {
	c.t.Helper()
	for {
		list := hear[*wire.Presence](c).Users
		if len(list) != 1 || list[0].User != user {
			c.t.Fatalf("heard %+v, want one word of %s", list, user)
		}
		if got := presence.State(list[0].State); got == want {
			return list[0]
		} else if got != presence.Unknown {
			c.t.Fatalf("%s is %s, want %s", user, got, want)
		}
	}
}

// hearsNothing: what was said of anybody would come before the pong.
func (c *client) hearsNothing() {
	c.t.Helper()
	c.say(&wire.Ping{T: 1})
	hear[*wire.Pong](c)
}

func (e *signalingNode) presence(query string) (status int, answer rest.PresenceAnswer) {
	e.rig.t.Helper()
	status, body, _ := e.get("/api/v1/presence"+query, e.rig.mint(access.Operator("root"), time.Hour))
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		e.rig.t.Fatalf("%s: %v", body, err)
	}
	return status, answer
}

// Two tabs on two signaling nodes are one user: whoever watches hears of the first tab and of the end of the last one.
func TestWatchersHearOfUsers(t *testing.T) {
	r := peopled(t)
	one, two := r.signalingNode(nil), r.signalingNode(nil)
	ada := one.connect("ada", nil)
	ada.say(&wire.Watch{Users: wire.List[string]{"bob"}})
	ada.learns("bob", presence.Offline)
	first, _ := one.join("lobby", "Bob")
	if said := ada.learns("bob", presence.Online); said.Since == 0 {
		t.Errorf("heard %+v", said)
	}
	second, _ := two.join("lobby", "Bob")
	var answer rest.PresenceAnswer
	testkit.Eventually(t, "both tabs", func() bool {
		_, answer = two.presence("?user=bob&user=ada&user=eve")
		return answer.Users[0].Connections == 2
	})
	if bob, ada, eve := answer.Users[0], answer.Users[1], answer.Users[2]; bob.State != "online" || len(bob.Rooms) != 1 || bob.Rooms[0] != "lobby" ||
		ada.State != "online" || len(ada.Rooms) != 0 || eve.State != "offline" {
		t.Errorf("the answer is %+v", answer)
	}
	if status, list := one.presence(""); status != http.StatusOK || *list.Online != 2 {
		t.Errorf("the list is %+v", list)
	}
	first.say(&wire.Leave{})
	first.closed()
	testkit.Eventually(t, "the end of a tab", func() bool {
		_, answer := two.presence("?user=bob")
		return answer.Users[0].Connections == 1
	})
	ada.hearsNothing()
	second.say(&wire.Leave{})
	if said := ada.learns("bob", presence.Offline); said.LastSeen == 0 {
		t.Errorf("heard %+v", said)
	}
	ada.say(&wire.Watch{Users: wire.List[string]{}})
	ada.say(&wire.Leave{})
	ada.closed()
}

// A signaling node that ends takes its leases with it and no others. Who resumes elsewhere never leaves; who does not is gone after
// a TTL, once.
func TestPresenceOutlivesASignalingNode(t *testing.T) {
	r, server := peopledIn(t)
	one, two := r.signalingNode(nil), r.signalingNode(nil)
	ada := one.connect("ada", nil)
	_, joined := two.join("lobby", "Bob")
	lost, eve := two.join("lobby", "Eve")
	elsewhere := one.connect("eve", nil)
	for _, user := range []string{"bob", "eve"} {
		ada.say(&wire.Watch{Users: wire.List[string]{user}})
		ada.learns(user, presence.Online)
	}
	ada.say(&wire.Watch{Users: wire.List[string]{"bob", "eve"}})
	hear[*wire.Presence](ada)
	two.stop()
	_ = lost.conn.CloseNow()
	bob, _ := one.resume(joined.Resume, 2)
	one.lapse(server, 1, "eve", string(eve.Peer))
	ada.hearsNothing()
	_ = elsewhere.conn.CloseNow()
	testkit.Eventually(t, "the node to give up eve's other connection", func() bool { return one.sockets.Load() == 2 })
	one.lapse(server, 0, "eve", "")
	ada.learns("eve", presence.Offline)
	bob.say(&wire.Leave{})
	ada.learns("bob", presence.Offline)
}

func TestWhoIsNotToldAndNotSeen(t *testing.T) {
	r := peopled(t)
	e := r.signalingNode(nil)
	bob, joined := e.join("lobby", "Bob")
	bob.say(&wire.Watch{Users: wire.List[string]{"ada"}})
	bob.refusedWith("canWatch")
	if joined.Permissions.Watch {
		t.Error("a token without canWatch lets its holder watch")
	}
	ada := e.connect("ada", func(g *access.Grant) { g.Hidden = true })
	ada.say(&wire.View{Wants: wire.List[wire.Want]{}})
	if fault := hear[*wire.Error](ada); fault.Code != wire.CodeBadMessage || !strings.Contains(fault.Message, "in no room") {
		t.Errorf("heard %+v", fault)
	}
	ada.say(&wire.Watch{Users: make(wire.List[string], wire.MaxWatched+1)})
	if fault := hear[*wire.Error](ada); fault.Code != wire.CodeBadMessage {
		t.Errorf("heard %+v", fault)
	}
	testkit.Eventually(t, "bob", func() bool {
		_, list := e.presence("")
		return *list.Online == 1 // A hidden person is not counted.
	})
	for range 2 * limits.WatchBurst {
		ada.say(&wire.Watch{Users: wire.List[string]{"bob"}})
	}
	for {
		if fault, ok := ada.next().(*wire.Error); ok {
			if fault.Code != wire.CodeTooManyMessages || !strings.Contains(fault.Message, "too often") {
				t.Errorf("heard %+v", fault)
			}
			break
		}
	}
	stranger := e.dial()
	stranger.say(&wire.Connect{Token: r.mint(access.Grant{}, time.Hour)})
	stranger.refusedWith("identity")
	if status, _, _ := e.get("/api/v1/presence", r.token("lobby", "Bob")); status != http.StatusForbidden {
		t.Errorf("whoever joins may list everybody: %d", status)
	}
	if status, _ := e.presence("?page=x"); status != http.StatusBadRequest {
		t.Errorf("a wrong page is answered %d", status)
	}
}

// A connection in no room ends when an operator removes its user, at whichever node, or when its API key is withdrawn; others stay.
func TestConnectionsInNoRoomAreEnded(t *testing.T) {
	r := peopled(t)
	one, two := r.signalingNode(nil), r.signalingNode(nil)
	ada, bob := two.connect("ada", nil), two.connect("bob", nil)
	root := r.mint(access.Operator("root"), time.Hour)
	for query, want := range map[string]int{"": http.StatusBadRequest, "?user=ada": http.StatusOK} {
		if status, text, _ := one.request(http.MethodDelete, "/api/v1/presence"+query, root); status != want {
			t.Errorf("%q is answered %d: %s", query, status, text)
		}
	}
	if status, _, _ := one.request(http.MethodDelete, "/api/v1/presence?user=bob", r.token("lobby", "Bob")); status != http.StatusForbidden {
		t.Errorf("whoever joins may remove users: %d", status)
	}
	if got := hear[*wire.Bye](ada); got.Code != wire.CodeKicked {
		t.Errorf("ada hears %+v", got)
	}
	ada.closed()
	two.connect("ada", nil).hearsNothing() // it is no ban
	bob.hearsNothing()
	if err := r.keys.Replace("APIother:" + apiSecret); err != nil {
		t.Fatal(err)
	}
	if got := hear[*wire.Bye](bob); got.Code != wire.CodeBadToken {
		t.Errorf("bob hears %+v", got)
	}
	testkit.Eventually(t, "all to be forgotten", func() bool { return two.endings.Watched() == 0 })
}

// Many identities behind one address change whom they watch no faster than they may join.
func TestWatchesOfAnAddressAreBounded(t *testing.T) {
	r := peopled(t)
	e := r.signalingNode(func(c *Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		c.Limits.AddressWatches = limits.Rate{PerSecond: 0.001, Burst: 2}
	})
	watches := func(address, identity string) wire.Message {
		c := e.from(address)
		c.say(&wire.Connect{Token: r.mint(access.Grant{Identity: identity, CanWatch: true}, time.Hour)})
		hear[*wire.Connected](c)
		c.say(&wire.Watch{Users: wire.List[string]{"bob"}})
		return c.next()
	}
	for i, who := range []string{"eve 1", "eve 2", "eve 3"} {
		fault, refused := watches("198.51.100.7", who).(*wire.Error)
		if refused != (i == 2) || refused && fault.Code != wire.CodeTooManyMessages {
			t.Errorf("%s is answered %+v", who, fault)
		}
	}
	if fault, refused := watches("198.51.100.8", "ada").(*wire.Error); refused {
		t.Errorf("another address is refused: %+v", fault)
	}
}

func TestPresenceWithoutAStore(t *testing.T) {
	r := newRig(t)
	e := r.signalingNode(nil)
	ada := e.connect("ada", nil)
	ada.say(&wire.Watch{Users: wire.List[string]{"bob"}})
	if list := hear[*wire.Presence](ada).Users; len(list) != 1 || list[0].State != "unknown" {
		t.Errorf("heard %+v", list)
	}
	if status, answer := e.presence("?user=bob"); status != http.StatusOK || answer.Users[0].State != "unknown" {
		t.Errorf("answered %d, %+v", status, answer)
	}
	if status, _ := e.presence(""); status != http.StatusServiceUnavailable {
		t.Errorf("answered %d", status)
	}
}
