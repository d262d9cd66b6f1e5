package signaling

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/people/messaging"
	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

func mayMessage(g *access.Grant) { g.CanMessage = true }

func (c *client) send(seq uint64, to ...string) {
	c.t.Helper()
	c.say(&wire.SendMessage{To: to, Kind: wire.MessageText, Body: []byte(`"hello"`), Stream: "s", Seq: seq})
}

// learnsState hears what became of a message, after "accepted".
func (c *client) learnsState(to, want string) *wire.MessageState {
	c.t.Helper()
	for {
		got := hear[*wire.MessageState](c)
		if got.State == "accepted" && want != "accepted" {
			continue
		}
		if got.To != to || got.State != want {
			c.t.Fatalf("heard %+v, want %s for %s", got, want, to)
		}
		return got
	}
}

func TestMessagesBetweenConnectionsInNoRoom(t *testing.T) {
	e := newRig(t).signalingNode(nil)
	ada, bob := e.connect("ada", mayMessage), e.connect("bob", nil)
	bob.say(&wire.Ping{}) // He is told that he is connected before messages find him.
	hear[*wire.Pong](bob)
	const seq = 1
	ada.send(seq, "bob", "bob")
	got := hear[*wire.UserMessage](bob)
	if got.From != "ada" || got.Name != "ada" || got.Kind != wire.MessageText || string(got.Body) != `"hello"` || got.Stream != "s" || got.Seq != seq || got.Room != "" {
		t.Fatalf("heard %+v", got)
	}
	bob.say(&wire.Received{UpTo: wire.List[wire.StreamMark]{{From: "ada", Stream: "s", Seq: seq}}})
	ada.learnsState("bob", "delivered")
	bob.send(1, "ada")
	if state := bob.learnsState("ada", "refused"); state.Code != wire.CodeNotAllowed || !strings.Contains(state.Message, "canMessage") {
		t.Fatalf("refused with %+v", state)
	}
}

// TestMessagesStayInTheRoom: without canMessage, only people of the own room are reached.
func TestMessagesStayInTheRoom(t *testing.T) {
	_, _, e := lobby(t)
	outside := e.connect("bob", nil)
	ada, joined := e.join("lobby", "ada")
	if joined.Permissions.Message != wire.ScopeRoom {
		t.Errorf("the permissions say %q", joined.Permissions.Message)
	}
	ada.send(1, "bob")
	learnsAmong(ada, "offline")
	inside, _ := e.join("lobby", "bob")
	for {
		if _, ok := ada.next().(*wire.PeerJoined); ok {
			break
		}
	}
	for seq := uint64(2); ; seq++ { // He is told that he is in before messages find him.
		ada.send(seq, "bob")
		if stateAmong(ada) != "offline" {
			break
		}
	}
	for {
		m, ok := inside.next().(*wire.UserMessage)
		if !ok {
			continue
		}
		if m.Room != "lobby" || m.From != joined.Identity {
			t.Fatalf("heard %+v", m)
		}
		break
	}
	outside.hearsNothing()
}

// learnsAmong hears a state among a room's events.
func learnsAmong(c *client, want string) {
	c.t.Helper()
	if got := stateAmong(c); got != want {
		c.t.Fatalf("heard %s, want %s", got, want)
	}
}

func stateAmong(c *client) string {
	c.t.Helper()
	for {
		if m, ok := c.next().(*wire.MessageState); ok {
			return m.State
		}
	}
}

func TestAFloodOfMessagesIsRefused(t *testing.T) {
	e := newRig(t).signalingNode(nil)
	ada := e.connect("ada", mayMessage)
	e.connect("bob", nil)
	for seq := range uint64(limits.DirectBurst + 10) {
		ada.send(seq+1, "bob")
	}
	for {
		if m := hear[*wire.MessageState](ada); m.State == "refused" {
			if m.Code != wire.CodeTooManyMessages {
				t.Fatalf("refused with %+v", m)
			}
			return
		}
	}
}

func TestWhoIsHiddenSendsNoMessages(t *testing.T) {
	e := newRig(t).signalingNode(nil)
	spy := e.connect("spy", func(g *access.Grant) { g.Hidden, g.CanMessage = true, true })
	spy.send(1, "spy")
	spy.learnsState("spy", "refused")
}

func TestNoticesByREST(t *testing.T) {
	r := newRig(t)
	r.prepare = func(s *Server) {
		s.parts.Rosters = &fakeRosters{found: roster.Room{Peers: []roster.Peer{{Identity: "bob"}, {Identity: "spy", Hidden: true}}}}
	}
	e := r.signalingNode(nil)
	bob := e.connect("bob", nil)
	bob.goesOn() // He is told that he is connected before messages find him.
	operator := r.mint(access.Operator("ops"), time.Hour)
	answered := make(chan string, 1)
	go func() {
		status, body := e.rest(http.MethodPost, "/api/v1/messages", operator, `{"to":["bob"],"body":"The cluster restarts at ten."}`)
		if status != http.StatusOK {
			body = http.StatusText(status) + body
		}
		answered <- body
	}()
	m := hear[*wire.UserMessage](bob)
	if m.Kind != wire.MessageNotice || m.From != "ops" {
		t.Errorf("heard %+v", m)
	}
	bob.say(&wire.Received{UpTo: wire.List[wire.StreamMark]{{From: m.From, Stream: m.Stream, Seq: m.Seq}}})
	if body := <-answered; !strings.Contains(body, `{"user":"bob","state":"delivered"}`) {
		t.Errorf("answered %s", body)
	}
	roomAdmin := r.mint(access.Grant{Identity: "host", Room: "a/b", RoomAdmin: true}, time.Hour)
	for _, row := range []struct {
		token, body string
		status      int
	}{
		{roomAdmin, `{"to":["bob"],"body":"x"}`, http.StatusForbidden},
		{roomAdmin, `{"room":"other","body":"x"}`, http.StatusForbidden},
		{operator, `{"body":"x"}`, http.StatusBadRequest},
		{operator, `nonsense`, http.StatusBadRequest},
		{"none", `{"to":["bob"],"body":"x"}`, http.StatusUnauthorized},
	} {
		if status, body := e.rest(http.MethodPost, "/api/v1/messages", row.token, row.body); status != row.status {
			t.Errorf("%s is answered %d %s, want %d", row.body, status, body, row.status)
		}
	}
}

// nobodyOnline is a presence that knows nobody.
type nobodyOnline struct{ node *messaging.Node }

func (n *nobodyOnline) Ask(user messaging.UserID) { go n.node.Online(user, false, true) }

// TestANoticeToARoomReachesPeopleInIt, and not their other connections, nor who has left since the roster was written.
func TestANoticeToARoomReachesPeopleInIt(t *testing.T) {
	r := newRig(t)
	n := r.node("sfu-1")
	r.placer.set("a/b", n.pin(firstEpoch))
	r.prepare = func(s *Server) {
		s.parts.Rosters = &fakeRosters{found: roster.Room{Peers: []roster.Peer{{Identity: "ada"}, {Identity: "bob"}, {Identity: "cy"}, {Identity: "spy", Hidden: true}}}}
		presence := new(nobodyOnline)
		presence.node = messaging.New(messaging.Peer{ID: s.config.Node, Boot: "b1"}, messaging.DefaultConfig(), nobodyElse{}, presence)
		s.parts.Messages = presence.node
	}
	e := r.signalingNode(nil)
	outside, gone, other := e.connect("bob", nil), e.connect("cy", nil), e.connect("dan", nil)
	answered := make(chan string, 1)
	inside := make(map[string]*client)
	for _, who := range []string{"ada", "bob"} {
		inside[who], _ = e.join("a/b", who)
		inside[who].goesOn() // He is told that he is in before messages find him.
	}
	admin := r.mint(access.Grant{Identity: "host", Room: "a/b", RoomAdmin: true}, time.Hour)
	go func() {
		_, body := e.rest(http.MethodPost, "/api/v1/messages", admin, `{"room":"a/b","body":{"break":5}}`)
		answered <- body
	}()
	for _, c := range inside {
		var m *wire.UserMessage
		for m == nil {
			m, _ = c.next().(*wire.UserMessage)
		}
		if m.Kind != wire.MessageNotice || m.Room != "a/b" || string(m.Body) != `{"break":5}` {
			t.Errorf("heard %+v", m)
		}
		c.say(&wire.Received{UpTo: wire.List[wire.StreamMark]{{From: m.From, Stream: m.Stream, Seq: m.Seq}}})
	}
	const want = `{"to":[{"user":"ada","state":"delivered"},{"user":"bob","state":"delivered"},{"user":"cy","state":"offline"}]}`
	if body := <-answered; strings.TrimSpace(body) != want {
		t.Errorf("answered %s, want %s", body, want)
	}
	for _, c := range []*client{outside, gone, other} {
		c.hearsNothing()
	}
}
