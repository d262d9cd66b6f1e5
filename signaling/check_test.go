package signaling

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/rest"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// check asks for a connection test and returns its token, or the refusal.
func (e *signalingNode) check(asking string) (token string, refusal reply.Refusal) {
	e.rig.t.Helper()
	status, body, header := e.request(http.MethodPost, "/api/v1/check", asking)
	var answer struct {
		reply.Refusal

		Token string `json:"token"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || (status == http.StatusOK) != (answer.Token != "") || header.Get("Cache-Control") != "no-store" {
		e.rig.t.Fatalf("answered %d %s (%v)", status, body, err)
	}
	return answer.Token, answer.Refusal
}

func (r *rig) minted(grant access.Grant, lasts time.Duration) string {
	r.t.Helper()
	token, err := r.keys.Mint(apiKey, grant, lasts)
	if err != nil {
		r.t.Fatal(err)
	}
	return token
}

// TestACheckHasARoomOfItsOwn: whoever may join a call may try the connection before it, in a room that nobody else is in.
func TestACheckHasARoomOfItsOwn(t *testing.T) {
	r := newRig(t)
	e := r.signalingNode(nil)
	if _, fault := e.check(""); fault.Code != wire.CodeBadToken {
		t.Errorf("without a token: %+v", fault)
	}
	if _, fault := e.check(r.minted(access.Operator("root"), time.Hour)); fault.Code != wire.CodeNotAllowed {
		t.Errorf("who may join no call: %+v", fault)
	}
	rooms := make(map[ring.RoomID]bool)
	refused := 0
	for range 2 * limits.TestBurst {
		token, fault := e.check(r.token("lobby", "Ada"))
		if fault.Code == wire.CodeTooManySockets {
			refused++
			continue
		}
		grant, err := r.keys.Verify(token)
		if err != nil {
			t.Fatal(err)
		}
		if grant.Room == "lobby" || rooms[grant.Room] || grant.Identity != "ada" || grant.MaxParticipants != rest.CheckPlaces ||
			time.Until(grant.Expires) > rest.CheckTokenLife || time.Until(grant.Expires) < rest.CheckTokenLife-time.Minute {
			t.Errorf("the token grants %+v", grant)
		}
		rooms[grant.Room] = true
	}
	if refused == 0 || len(rooms) < limits.TestBurst {
		t.Errorf("%d were answered, %d refused", len(rooms), refused)
	}
}

// TestACheckGrantsNoMoreThanItsAsker: neither a right nor a second of life that the asking token lacks.
func TestACheckGrantsNoMoreThanItsAsker(t *testing.T) {
	r := newRig(t)
	e := r.signalingNode(nil)
	all := access.Everything("ada", "lobby")
	all.RoomCreate, all.RoomAdmin, all.RoomList, all.CanRename, all.CanWatch, all.CanMessage, all.ExpectedSize = true, true, true, true, true, true, 1000
	narrow := map[string]func(g *access.Grant){
		"everything":    func(*access.Grant) {},
		"to watch":      func(g *access.Grant) { g.CanPublish = false },
		"to be heard":   func(g *access.Grant) { g.Sources = access.Microphone },
		"to send":       func(g *access.Grant) { g.CanSubscribe = false },
		"open rooms":    func(g *access.Grant) { g.RoomCreate = false },
		"unseen":        func(g *access.Grant) { g.Hidden, g.CanPublish, g.CanPublishData = true, false, false },
		"into any room": func(g *access.Grant) { g.Room = "" },
	}
	for name, change := range narrow {
		asking := all
		change(&asking)
		asking.Identity = name
		const lasts = time.Minute
		token, fault := e.check(r.minted(asking, lasts))
		got, err := r.keys.Verify(token)
		if err != nil {
			t.Fatalf("%s: %+v, %v", name, fault, err)
		}
		if time.Until(got.Expires) > lasts {
			t.Errorf("%s: the check lasts longer than the token: %v", name, time.Until(got.Expires))
		}
		want := access.Grant{
			Identity: name, Room: got.Room, RoomJoin: true, RoomCreate: asking.RoomCreate, MaxParticipants: rest.CheckPlaces, Check: true,
			CanPublish: asking.CanPublish, Sources: asking.Sources, CanSubscribe: asking.CanSubscribe, Hidden: asking.Hidden,
			Key: apiKey, Expires: got.Expires,
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the check grants %+v, want %+v", name, got, want)
		}
	}
	// Tokens count for a little longer than they say, because clocks differ.
	if _, fault := e.check(r.minted(all, -time.Second)); fault.Code != wire.CodeTokenExpired {
		t.Errorf("a token that has just expired: %+v", fault)
	}
	demands := r.signalingNode(func(c *Config) { c.DemandRoomCreate = true })
	if token, fault := demands.check(r.minted(all, time.Hour)); token == "" {
		t.Errorf("where roomCreate is demanded, and granted: %+v", fault)
	}
	all.RoomCreate = false
	if _, fault := demands.check(r.minted(all, time.Hour)); fault.Code != wire.CodeNotAllowed || !strings.Contains(fault.Message, "roomCreate") {
		t.Errorf("where roomCreate is demanded: %+v", fault)
	}
}

// TestAChecksTokenAllowsNothingElse: above all no further checks.
func TestAChecksTokenAllowsNothingElse(t *testing.T) {
	r := newRig(t)
	e := r.signalingNode(nil)
	token, _ := e.check(r.token("lobby", "Ada"))
	if _, fault := e.check(token); fault.Code != wire.CodeNotAllowed || !strings.Contains(fault.Message, "connection test") {
		t.Errorf("a check of a check: %+v", fault)
	}
	grant, err := r.keys.Verify(token)
	if err != nil {
		t.Fatal(err)
	}
	if status, body, _ := e.get("/api/v1/rooms/"+string(grant.Room)+"/roster", token); status != http.StatusForbidden {
		t.Errorf("its roster: %d %s", status, body)
	}
	c := e.dial()
	c.say(&wire.Connect{Token: token})
	if fault := hear[*wire.Error](c); fault.Code != wire.CodeNotAllowed {
		t.Errorf("a connection in no room: %+v", fault)
	}
	grant.Expires = time.Now().Add(-time.Second)
	late := e.dial()
	late.say(&wire.Join{Token: r.minted(grant, -time.Second)})
	if fault := hear[*wire.Error](late); fault.Code != wire.CodeTokenExpired {
		t.Errorf("after its end: %+v", fault)
	}
}

// TestWhatACheckMadeEndsWithIt: the session, its peer, resume token and relay credentials, none of which anybody else sees.
func TestWhatACheckMadeEndsWithIt(t *testing.T) {
	r := newRig(t)
	n := r.node("sfu-1")
	seen := &recordedLeases{rooms: make(map[ring.RoomID]bool)}
	r.users = seen
	var given []time.Time // only a session's loop appends, before it answers
	e := r.signalingNode(func(c *Config) {
		c.ICEServers = func(session string, ends, _ time.Time) ([]wire.ICEServer, time.Duration) {
			given = append(given, ends)
			return []wire.ICEServer{{URLs: []string{"turn:one"}, Username: session}}, time.Hour
		}
	})
	r.placer.set("lobby", n.pin(firstEpoch))
	_, own := e.join("lobby", "Ada")
	// A busy machine may not get in before a short token ends.
	for lasts := 3 * time.Second; ; lasts *= 2 {
		asking := access.Everything("ada", "lobby")
		token, _ := e.check(r.minted(asking, lasts))
		grant, err := r.keys.Verify(token)
		if err != nil {
			t.Fatal(err)
		}
		r.placer.set(grant.Room, n.pin(firstEpoch))
		c := e.dial()
		c.say(&wire.Join{Token: token})
		joined, ok := c.next().(*wire.Joined)
		if !ok && lasts < generous {
			continue
		}
		if !ok {
			t.Fatal("nobody gets in")
		}
		if got := joined.ICEServers.ICEServers[0].Username; got != own.ICEServers.ICEServers[0].Username || len(given) < 2 || !given[len(given)-1].Equal(grant.Expires) || !given[0].IsZero() {
			t.Errorf("relay credentials of %q until %v, want %q until %v", got, given, own.ICEServers.ICEServers[0].Username, grant.Expires)
		}
		if bye := waitFor[*wire.Bye](c); bye.Code != wire.CodeTokenExpired || time.Now().Before(grant.Expires) {
			t.Errorf("told %+v", bye)
		}
		testkit.Eventually(t, "the peer leaves its room", func() bool { return strings.Contains(n.said(), "ada leaves") })
		e.refused(joined.Resume, 2, wire.CodeResumeExpired)
		testkit.Eventually(t, "the call is told to the store", func() bool { return seen.has("lobby") })
		if seen.has(grant.Room) {
			t.Error("the check's room is told to the store of who is online")
		}
		return
	}
}

// recordedLeases keeps the rooms of leases that were to be written.
type recordedLeases struct {
	nobody

	mu    sync.Mutex
	rooms map[ring.RoomID]bool // guarded by mu
}

func (l *recordedLeases) Add(_ context.Context, leases []presence.Lease) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, lease := range leases {
		l.rooms[lease.Room] = true
	}
	return nil
}

func (l *recordedLeases) has(room ring.RoomID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.rooms[room]
}
