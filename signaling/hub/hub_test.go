package hub

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// client is a session that a test looks into.
type client struct {
	room  ring.RoomID
	load  *headroom.Room
	shown bool
	moves chan pin.Pin
	died  []pin.BootID
}

func newClient(room ring.RoomID) *client { return &client{room: room, moves: make(chan pin.Pin, 1)} }

func (c *client) Room() ring.RoomID    { return c.room }
func (c *client) Load() *headroom.Room { return c.load }
func (c *client) Shown() bool          { return c.shown }
func (c *client) End(error)            {}
func (c *client) Tell(error)           {}

func (c *client) BranchDied(boot pin.BootID) { c.died = append(c.died, boot) }

func (c *client) Move(to pin.Pin) {
	select {
	case <-c.moves:
	default:
	}
	c.moves <- to
}

func newHub(nodes int) *Hub {
	return New(Deps{Nodes: func() int { return nodes }, Panics: panics.New(), Log: slog.New(slog.DiscardHandler)})
}

// hubOf is a hub with a session in each of so many rooms, all on boot b1.
func hubOf(rooms int) (*Hub, []*client) {
	h := newHub(1)
	sessions := make([]*client, rooms)
	for i := range sessions {
		sessions[i] = newClient(ring.RoomID(fmt.Sprint("room-", i)))
		h.Enter(sessions[i], pin.Pin{Fence: pin.Fence{Epoch: 1}, Node: "a", Boot: "b1"})
	}
	return h, sessions
}

func TestTheBranchWithTheMostPeopleComesFirst(t *testing.T) {
	h := newHub(1)
	for _, branch := range []pin.BootID{"b2", "b3", "b3", "", ""} {
		one := newClient("room")
		h.Enter(one, pin.Pin{Fence: pin.Fence{Epoch: 1}, Node: "a", Boot: "b1"})
		h.Branch(one, branch)
	}
	if got := h.BranchesOf("room"); !slices.Equal(got, []pin.BootID{"b3", "b2"}) {
		t.Errorf("the branches are %v", got)
	}
	if got := h.BranchesOf("another"); len(got) > 0 {
		t.Errorf("a room that is not here has the branches %v", got)
	}
}

func TestMostSessionsSayWhoStandsBy(t *testing.T) {
	h := newHub(1)
	var sessions []*client
	for _, boot := range []pin.BootID{"b3", "b2", "b3", ""} {
		s := newClient("room")
		h.Enter(s, pin.Pin{Fence: pin.Fence{Epoch: 1}, Node: "a", Boot: "b1"})
		h.Standby(s, boot, false)
		sessions = append(sessions, s)
	}
	if got := h.StandbyOf("room"); got != "b3" {
		t.Errorf("%q stands by, want b3", got)
	}
	if got := h.BranchesOf("room"); len(got) > 0 {
		t.Errorf("standbys are taken for the branches %v", got)
	}
	h.Leave(sessions[0])
	h.Standby(sessions[2], "", false)
	if got := h.StandbyOf("room"); got != "b2" {
		t.Errorf("%q stands by, want b2, the only one that is left", got)
	}
	h.Leave(sessions[1])
	if got := h.StandbyOf("room"); got != "" {
		t.Errorf("%q stands by, and no session says so", got)
	}
}

// TestAllSessionsSayThatAllGoesOn: a room is whole at a boot only if each of its sessions was told so of the same one.
func TestAllSessionsSayThatAllGoesOn(t *testing.T) {
	h := newHub(1)
	at := func() pin.BootID { return h.PinnedTo("b1")[0].WholeAt }
	enter := func() *client {
		s := newClient("room")
		h.Enter(s, pin.Pin{Fence: pin.Fence{Epoch: 1}, Node: "a", Boot: "b1"})
		return s
	}
	one, other := enter(), enter()
	for _, c := range []struct {
		one, other       pin.BootID
		oneAll, otherAll bool
		want             pin.BootID
	}{
		{"b2", "", true, false, ""}, {"b2", "b2", true, false, ""}, {"b2", "b3", true, true, ""}, {"b2", "b2", true, true, "b2"}, {"b2", "b2", false, true, ""},
	} {
		h.Standby(one, c.one, c.oneAll)
		h.Standby(other, c.other, c.otherAll)
		if got := at(); got != c.want {
			t.Errorf("%+v: whole at %q", c, got)
		}
	}
	if h.Leave(one); at() != "b2" {
		t.Errorf("whole at %q once the one that was told otherwise has left", at())
	}
	if enter(); at() != "" {
		t.Error("somebody came who was told nothing")
	}
}

func TestRoomsAreFoundByTheBootOfTheirPin(t *testing.T) {
	h, sessions := hubOf(3)
	count := func(b1, b2 int) {
		t.Helper()
		if one, two := len(h.PinnedTo("b1")), len(h.PinnedTo("b2")); one != b1 || two != b2 {
			t.Fatalf("%d and %d rooms, want %d and %d", one, two, b1, b2)
		}
	}
	count(3, 0)
	h.Moved(context.Background(), "room-0", pin.Pin{Fence: pin.Fence{Epoch: 2}, Node: "b", Boot: "b2"})
	count(2, 1)
	h.Moved(context.Background(), "room-0", pin.Pin{Fence: pin.Fence{Epoch: 1}, Node: "a", Boot: "b1"}) // Lower: ignored.
	count(2, 1)
	if h.Branch(sessions[0], "b1"); !h.PinnedTo("b2")[0].Spread {
		t.Error("a room with somebody at a branch is not spread")
	}
	if h.Branch(sessions[0], ""); h.PinnedTo("b2")[0].Spread {
		t.Error("a room with nobody at a branch is spread")
	}
	for _, s := range sessions {
		h.Leave(s)
	}
	if count(0, 0); len(h.byBoot) != 0 {
		t.Fatalf("%d boots are remembered without a room", len(h.byBoot))
	}
}

// A thousand boots that are gone are asked about at every event, under the lock that every join needs.
func TestAskingAboutTheGoneCostsNothingPerRoom(t *testing.T) {
	took := func(rooms int) time.Duration { // the best of ten
		h, _ := hubOf(rooms)
		best := time.Duration(math.MaxInt64)
		for range 10 {
			began := time.Now()
			for i := range 1024 {
				h.PinnedTo(pin.BootID(fmt.Sprint("gone-", i)))
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	few := max(took(100), time.Millisecond)
	if many := took(20_000); many > 20*few {
		t.Errorf("asking takes %v with 20,000 rooms, and %v with 100", many, few)
	}
}
