package signaling

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

// hubOf is a hub with a session in each of so many rooms, all on boot b1.
func hubOf(rooms int) (*Hub, []*session) {
	h := newHub(nil, func() int { return 1 }, panics.New(), slog.New(slog.DiscardHandler))
	sessions := make([]*session, rooms)
	for i := range sessions {
		sessions[i] = &session{who: access.Session{Room: ring.RoomID(fmt.Sprint("room-", i))}, moves: make(chan pin.Pin, 1)}
		h.enter(sessions[i], pin.Pin{Fence: pin.Fence{Epoch: 1}, Node: "a", Boot: "b1"})
	}
	return h, sessions
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
	for _, s := range sessions {
		h.leave(s)
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
