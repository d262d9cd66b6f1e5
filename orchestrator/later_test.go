package orchestrator

import (
	"errors"
	"testing"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/orchestrator/pinowner"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

// Newer nodes have the room: neither a signaling node nor a media node of this version touches the pin, and joins are told.
func TestPinOfALaterVersionIsLeftAlone(t *testing.T) {
	store, ctx, room := testkit.NewMemoryStore(), t.Context(), class
	store.Put(room, storetest.Later)
	ours := pinAt("b", 1, 5000, 7)
	where := &addresses{boots: map[string]pin.BootID{ours.Control: ours.Boot}}
	signaling := New(store, fixed(viewOf(sfu("a", 1), sfu("b", 1))), where, patient(), quiet)
	for name, ask := range map[string]func() error{
		"Place":      func() error { _, err := signaling.Place(ctx, room, headroom.Room{}); return err },
		"Enter":      func() error { _, _, err := signaling.Enter(ctx, room, headroom.Room{}, waitlist.Entry{}); return err },
		"Rehome":     func() error { _, err := signaling.Rehome(ctx, room, ours, headroom.Room{}); return err },
		"PlaceAgain": func() error { _, err := signaling.PlaceAgain(ctx, room, ours, headroom.Room{}); return err },
	} {
		if err := ask(); !errors.Is(err, pin.ErrLater) || errors.Is(err, ErrStoreUnavailable) {
			t.Errorf("%s: %v, want pin.ErrLater", name, err)
		}
	}

	cfg := pinowner.DefaultConfig()
	cfg.Majority = func() bool { return true }
	open := testkit.NewRooms(pin.Holding{Room: room, Pin: ours})
	owner := pinowner.New(store, open, cfg, quiet)
	if err := owner.Refresh(ctx); err != nil || len(open.Fenced()) != 0 {
		t.Errorf("Refresh = %v, fenced %v: the open room goes on", err, open.Fenced())
	}
	for name, p := range map[string]pin.Pin{"open": ours, "not open": pinAt("b", 1, 6000, 7)} {
		if err := owner.Confirm(ctx, room, p); !errors.Is(err, pin.ErrUnconfirmed) || !errors.Is(err, pin.ErrLater) {
			t.Errorf("Confirm of a room that is %s: %v, want pin.ErrUnconfirmed", name, err)
		}
	}
	if got := store.Stands(room); got != storetest.Later {
		t.Errorf("the pin is %q now", got)
	}
}
