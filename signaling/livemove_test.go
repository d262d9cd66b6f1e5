package signaling

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/loglimit"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/hub"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// Outrank notes what a fake media node is told.
func (n *node) Outrank(_ context.Context, request *control.OutrankRequest) (*control.OutrankReply, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.outranked = append(n.outranked, request)
	return &control.OutrankReply{Held: true}, nil
}

func (n *node) arrived() (people int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, said := range n.heard {
		if strings.HasSuffix(said, " arrived") {
			people++
		}
	}
	return people
}

// waitFor leaves out what else is said.
func waitFor[M wire.Message](c *client) M {
	for {
		if m, ok := c.next().(M); ok {
			return m
		}
	}
}

// TestAnOperatorMovesARoom: who is connected here is told by this node, who is elsewhere by the word of the former owner, and without
// asking where the room is.
func TestAnOperatorMovesARoom(t *testing.T) {
	r, one, two, e := lobbyAndSpare(t)
	other := r.signalingNode(func(*Config) {})
	ada, _ := e.join("lobby", "Ada")
	grace, _ := other.join("lobby", "Grace")
	admin := r.mint(access.Operator("operator"), generous)
	to := two.pin(firstEpoch + 1)
	r.placer.again = func(pin.Pin) (pin.Pin, error) { return to, nil }
	got, text, _ := e.requestBody(http.MethodPost, "/api/v1/rooms/lobby/move", admin, `{"node":"sfu-2"}`)
	if got != http.StatusOK || !strings.Contains(text, `"from":"sfu-1","to":"sfu-2"`) {
		t.Fatalf("%d %s", got, text)
	}
	one.set(func() {
		if len(one.outranked) != 1 || !one.outranked[0].GetLive() || one.outranked[0].GetPin().GetNode() != "sfu-2" {
			t.Errorf("the former owner is told %v", one.outranked)
		}
	})
	calls := func() int {
		r.placer.mu.Lock()
		defer r.placer.mu.Unlock()
		return len(r.placer.calls)
	}
	asked := calls()
	one.say("Grace", one.pin(firstEpoch).Fence, &control.PeerEvent{Event: &control.PeerEvent_Fenced{
		Fenced: &control.Fenced{Current: control.FenceProto(to.Fence), Pin: control.PinProto(to), Live: true},
	}})
	for _, c := range []*client{ada, grace} {
		restart := waitFor[*wire.Restart](c)
		if restart.Node != "sfu-2" || restart.Epoch != firstEpoch+1 || !restart.Live || restart.OverlapMs != 10000 {
			t.Errorf("restart %+v", restart)
		}
		c.say(&wire.Migrated{Epoch: firstEpoch + 1, Attempt: 1, How: wire.HowLive, GapMs: 30})
	}
	if now := calls(); now != asked {
		t.Errorf("the placer was asked %d times more", now-asked)
	}
	testkit.Eventually(t, "word that both have arrived", func() bool { return two.arrived() == 2 })
	two.say("Ada", to.Fence, &control.PeerEvent{Event: &control.PeerEvent_Settled{Settled: &control.Settled{}}})
	if m := waitFor[*wire.Settled](ada); m.Epoch != firstEpoch+1 {
		t.Errorf("settled %+v", m)
	}
	if !e.Hub().Settled("lobby", to.Fence) || other.Hub().Settled("lobby", to.Fence) {
		t.Error("the hub of who was told knows that the room has settled, and no other")
	}

	// A death is no live move: the next restart is an ordinary one.
	back := one.pin(firstEpoch + 2)
	r.placer.set("lobby", back)
	e.Hub().Moved(t.Context(), "lobby", back)
	if restart := waitFor[*wire.Restart](ada); restart.Live || restart.Epoch != firstEpoch+2 {
		t.Errorf("after a death: %+v", restart)
	}
}

// A move is judged by what the room's media node says of the room, whether or not the asked signaling node has clients in it.
func TestAMoveCostsTheSameAtEverySignalingNode(t *testing.T) {
	r, one, _, e := lobbyAndSpare(t)
	other := r.signalingNode(func(c *Config) { c.Node = "signaling-2" })
	e.join("lobby", "Ada")
	one.set(func() {
		one.size = &control.RoomSize{People: 3, Cameras: 1, Microphones: 3, Expected: 4, Egress: &control.Egress{BitsPerSecond: 5000, PacketsPerSecond: 6}}
	})
	r.placer.again = func(from pin.Pin) (pin.Pin, error) { return from, nil }
	admin := r.mint(access.Operator("operator"), generous)
	for _, at := range []*signalingNode{e, other} {
		if got, text, _ := at.requestBody(http.MethodPost, "/api/v1/rooms/lobby/move", admin, `{}`); got != http.StatusOK {
			t.Fatalf("%d %s", got, text)
		}
	}
	r.placer.mu.Lock()
	defer r.placer.mu.Unlock()
	want := headroom.Room{
		People: 4, Cameras: 2, Microphones: 4, Running: true, Measured: true, Sent: headroom.Egress{BitsPerSecond: 5000, PacketsPerSecond: 6},
	}.AtLeast(e.config.ExpectedSize)
	if got := r.placer.expects; len(got) != 2 || got[0] != want || got[1] != want {
		t.Errorf("the room is moved as %+v, want twice %+v", got, want)
	}
}

// TestLinesInTransitOfALiveMove: the former node took lines before it was told, and they reach who has moved; nothing else of it does.
func TestLinesInTransitOfALiveMove(t *testing.T) {
	r, one, two, e := lobbyAndSpare(t)
	ada, _ := e.join("lobby", "Ada")
	to := two.pin(firstEpoch + 1)
	r.placer.set("lobby", to)
	e.Hub().MovedLive(t.Context(), "lobby", to)
	waitFor[*wire.Restart](ada)
	former := one.pin(firstEpoch).Fence
	one.say("Ada", former, &control.PeerEvent{Event: &control.PeerEvent_Speakers{Speakers: &control.Speakers{}}})
	one.say("Ada", former, &control.PeerEvent{Event: &control.PeerEvent_Chat{Chat: &control.Chat{Peer: "p-9", Text: "in transit", Id: "c-1"}}})
	one.say("Ada", former, &control.PeerEvent{Event: &control.PeerEvent_Fenced{
		Fenced: &control.Fenced{Current: control.FenceProto(to.Fence), Pin: control.PinProto(to), Live: true},
	}})
	if line := hear[*wire.Chat](ada); line.Text != "in transit" || line.ID != "c-1" || line.Epoch != firstEpoch+1 {
		t.Errorf("heard %+v", line)
	}
	one.breakLinks()
	two.say("Ada", to.Fence, &control.PeerEvent{Event: &control.PeerEvent_Chat{Chat: &control.Chat{Peer: "p-9", Text: "here"}}})
	if line := hear[*wire.Chat](ada); line.Text != "here" {
		t.Errorf("heard %+v of the new node", line)
	}
	if attached := len(one.attached()) + len(two.attached()); attached != 2 {
		t.Errorf("%d attaches, want one to each node", attached)
	}
}

func TestMistakesOfAMove(t *testing.T) {
	r, _, _, e := lobbyAndSpare(t)
	e.join("lobby", "Ada")
	admin := r.mint(access.Operator("operator"), generous)
	r.placer.again = func(pin.Pin) (pin.Pin, error) {
		return pin.Pin{}, &orchestrator.TargetError{Node: "sfu-9", Why: "it is draining"}
	}
	for _, c := range []struct {
		path, token, body string
		want              int
		says              string
	}{
		{"lobby/move", r.mint(access.Everything("ada", "lobby"), generous), "", http.StatusForbidden, ""},
		{"lobby/move", "", "", http.StatusUnauthorized, ""},
		{"nowhere/move", admin, "", http.StatusNotFound, "is open; `holdfast rooms` lists"},
		{"lobby/move", admin, `{"to":"sfu-2"}`, http.StatusBadRequest, "{node?}"},
		{"lobby/move", admin, `{"node":"sfu-9"}`, http.StatusConflict, "Node sfu-9 cannot take the room: it is draining."},
	} {
		if got, text, _ := e.requestBody(http.MethodPost, "/api/v1/rooms/"+c.path, c.token, c.body); got != c.want || !strings.Contains(text, c.says) {
			t.Errorf("%s %s: %d %s, want %d %s", c.path, c.body, got, text, c.want, c.says)
		}
	}
	r.placer.again = func(pin.Pin) (pin.Pin, error) { return pin.Pin{}, errors.New("broken") }
	if got, text, _ := e.requestBody(http.MethodPost, "/api/v1/rooms/lobby/move", admin, ""); got != http.StatusInternalServerError {
		t.Errorf("a broken placer: %d %s", got, text)
	}
}

// Whoever has a token chooses how often a client tells of its move, and of which.
func TestMigratedIsLoggedAFewTimes(t *testing.T) {
	var said bytes.Buffer
	s := &session{
		server: &Server{pathLogs: loglimit.New(0, 2), hub: &hub.Hub{}, parts: Parts{Views: newFakeViews()}},
		log:    slog.New(slog.NewTextHandler(&said, nil)), pin: pin.Pin{Fence: pin.Fence{Epoch: firstEpoch}},
	}
	lost := make([]wire.Stream, 64)
	for i := range lost {
		lost[i] = wire.Stream{Peer: wire.PeerID(fmt.Sprint("p-", i)), Source: wire.SourceCamera}
	}
	for range 100 {
		s.migrated(&wire.Migrated{Epoch: firstEpoch, How: wire.HowRestart, Lost: lost})
		s.migrated(&wire.Migrated{Epoch: firstEpoch + 7, How: wire.HowRestart, Lost: lost})
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if len(lines) != 5 || !strings.Contains(lines[0], "lost=64") || strings.Contains(said.String(), "p-3") || strings.Contains(said.String(), fmt.Sprint("epoch=", firstEpoch+7)) {
		t.Errorf("%d lines, want 5 short ones of the present epoch:\n%.2000s", len(lines), said.String())
	}
	s.pin.Fence.Epoch++
	s.migrated(&wire.Migrated{Epoch: firstEpoch + 1, How: wire.HowRestart})
	if got := strings.Count(said.String(), "\n"); got != 6 {
		t.Errorf("%d lines after the next move, want 6", got)
	}
}

// TestAnEarlierMoveFreesNoPlace: a client that tells of another epoch is still on its way, so that the next one is not sent yet.
func TestAnEarlierMoveFreesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const window = 8 // of one of many signaling nodes
		before, after := pin.Pin{Fence: pin.Fence{Epoch: 1}, Node: "a", Boot: "b1"}, pin.Pin{Fence: pin.Fence{Epoch: 2}, Node: "b", Boot: "b2"}
		h := hub.New(hub.Deps{Nodes: func() int { return 64 }, Panics: panics.New(), Log: slog.New(slog.DiscardHandler)})
		s := &session{server: &Server{pathLogs: loglimit.New(0, 1), hub: h, parts: Parts{Views: newFakeViews()}}, log: slog.New(slog.DiscardHandler)}
		s.seat.shown.Store(true) // so it is sent first
		seats := []*seat{&s.seat}
		for range window {
			seats = append(seats, &seat{})
		}
		for _, one := range seats {
			one.room, one.moves = "small", make(chan pin.Pin, 1)
			h.Enter(one, before)
		}
		sent := func() (count int) {
			for _, one := range seats {
				count += len(one.moves)
			}
			return count
		}
		h.Moved(t.Context(), "small", after)
		s.pin = after
		for _, epoch := range []uint64{1, 7} {
			s.migrated(&wire.Migrated{Epoch: epoch, How: wire.HowRestart})
			if got := sent(); got != window {
				t.Errorf("%d clients are sent after a word of epoch %d, want %d", got, epoch, window)
			}
		}
		s.migrated(&wire.Migrated{Epoch: 2, How: wire.HowRestart})
		if got := sent(); got != window+1 {
			t.Errorf("%d clients are sent after one has arrived, want %d", got, window+1)
		}
		for _, one := range seats {
			h.Leave(one)
		}
	})
}
