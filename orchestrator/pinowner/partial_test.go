package pinowner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// halves is a store of two masters: rooms "two-*" are on the second.
type halves struct{ one, two *testkit.MemoryStore }

func (h halves) of(room ring.RoomID) *testkit.MemoryStore {
	if strings.HasPrefix(string(room), "two-") {
		return h.two
	}
	return h.one
}

func (h halves) Incarnations(ctx context.Context) ([]pin.Incarnation, error) {
	one, err := h.one.Incarnations(ctx)
	two, failed := h.two.Incarnations(ctx)
	return append(one, two...), errors.Join(err, failed)
}

// unreachable is what redisstore says of a master without a known incarnation.
func (h halves) unreachable(ctx context.Context, room ring.RoomID, err error) error {
	if _, unknown := h.of(room).Incarnations(ctx); unknown != nil && err != nil {
		return fmt.Errorf("%w: %w", pin.ErrUnreachable, err)
	}
	return err
}

func (h halves) Refresh(ctx context.Context, held []pin.Holding, due func(pin.Holding) bool) ([]pin.Found, error) {
	found := make([]pin.Found, 0, len(held))
	for _, ours := range held {
		f, err := h.of(ours.Room).Refresh(ctx, []pin.Holding{ours}, due)
		if err != nil {
			f = []pin.Found{{Room: ours.Room, Err: h.unreachable(ctx, ours.Room, err)}}
		}
		found = append(found, f...)
	}
	return found, nil
}

func (h halves) Swap(ctx context.Context, room ring.RoomID, old, next pin.Pin, why string) (pin.Pin, pin.Incarnation, error) {
	return h.of(room).Swap(ctx, room, old, next, why)
}

func (h halves) Prolong(ctx context.Context, room ring.RoomID) (pin.Pin, error) {
	p, err := h.of(room).Prolong(ctx, room)
	return p, h.unreachable(ctx, room, err)
}

// A master that is gone takes only its own incarnation out of the report, however long it is gone, also where a majority
// vouches for its rooms, and on a node that started later.
func TestAnOwnerStaysSyncedWithTheLivingMasters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := halves{testkit.NewMemoryStore(), testkit.NewMemoryStore()}
		store.two.StartIn(100)
		held := []pin.Holding{{Room: "one-1", Pin: pinAt("a", 1, 5000, 5)}, {Room: "two-1", Pin: pinAt("a", 1, 5000, 6)}}
		for _, h := range held {
			store.of(h.Room).Put(h.Room, h.Pin.Encode())
		}
		cfg := DefaultConfig()
		cfg.Majority = func() bool { return true }
		ctx, cancel := context.WithCancel(t.Context())
		var ended []chan error
		start := func(held ...pin.Holding) *Owner {
			own, done := New(store, testkit.NewRooms(held...), cfg, quiet), make(chan error, 1)
			go func() { done <- own.Run(ctx) }()
			ended = append(ended, done)
			return own
		}
		want := func(when string, own *Owner, incarnations ...pin.Incarnation) {
			t.Helper()
			if got := own.Synced(); got != pin.IncarnationsOf(incarnations) {
				t.Errorf("%s: synced in %v, want %v", when, got.All(), incarnations)
			}
		}
		own := start(held...)
		after(time.Minute)
		want("both masters live", own, 1, 100)

		store.two.Fail(errors.New("the second master is gone"))
		after(10 * time.Second)
		want("10 s", own, 1, 100)
		after(10 * time.Second)
		want("20 s", own, 1)
		later := start()
		for range 10 {
			for _, h := range held {
				if err := own.Confirm(t.Context(), h.Room, h.Pin); err != nil {
					t.Fatalf("Confirm %s: %v", h.Room, err)
				}
				want("right after Confirm", own, 1)
			}
			after(time.Minute)
			want("minutes later", own, 1)
			want("started without the second master", later, 1)
		}

		store.two.Lose()
		store.two.Fail(nil)
		after(2 * time.Second)
		want("the second master is back", own, 1, 101)
		want("the second master is back", later, 1, 101)
		if stands := store.two.Stands("two-1"); stands != held[1].Pin.Encode() {
			t.Errorf("the second master has %q", stands)
		}
		cancel()
		for _, done := range ended {
			<-done
		}
	})
}

// A master that comes back empty while another is gone is in the report once all is written to it; what the gone one lacks
// is no fault.
func TestAnOwnerIsSyncedAgainWhileAMasterIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, book := halves{testkit.NewMemoryStore(), testkit.NewMemoryStore()}, &rosterBook{}
		store.two.StartIn(100)
		held := []pin.Holding{{Room: "one-1", Pin: pinAt("a", 1, 5000, 5)}, {Room: "two-1", Pin: pinAt("a", 1, 5000, 6)}}
		cfg := DefaultConfig()
		cfg.Rosters = book
		own, done := New(store, testkit.NewRooms(held...), cfg, quiet), make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- own.Run(ctx) }()
		after(time.Minute)
		store.two.Fail(errors.New("the second master is gone"))
		after(time.Minute)
		book.say(errors.New("rosters of the first master are not written"))
		store.one.Lose()
		after(time.Minute)
		if got := own.Synced(); got != "" {
			t.Errorf("synced in %v, and the first master lacks rosters", got.All())
		}
		book.say(fmt.Errorf("rosters of the second master are not written: %w", pin.ErrUnreachable))
		after(2 * cfg.RefreshEvery)
		if got := own.Synced(); got != pin.IncarnationsOf([]pin.Incarnation{2}) {
			t.Errorf("synced in %v, want the first master's", got.All())
		}
		after(time.Minute)
		if _, rewritten := book.say(nil); rewritten > 12 || own.Synced() != pin.IncarnationsOf([]pin.Incarnation{2}) {
			t.Errorf("a minute later synced in %v, and all rosters were written %d times", own.Synced().All(), rewritten)
		}
		store.two.Fail(nil)
		after(2 * cfg.RefreshEvery)
		if got := own.Synced(); got != pin.IncarnationsOf([]pin.Incarnation{2, 100}) {
			t.Errorf("synced in %v, want both masters'", got.All())
		}
		cancel()
		<-done
	})
}

// A majority may vouch for a pin before the owner has looked which masters answer: nothing is reported then.
func TestAVouchedPinIsInNoReportedIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := halves{testkit.NewMemoryStore(), testkit.NewMemoryStore()}
		store.two.StartIn(100)
		cfg := DefaultConfig()
		cfg.Majority = func() bool { return true }
		own := New(store, testkit.NewRooms(), cfg, quiet)
		if err := own.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		after(silentFor)
		store.two.Fail(errors.New("the second master is gone"))
		if err := own.Confirm(t.Context(), "two-2", pinAt("a", 1, 5000, 7)); err != nil || own.Synced() != "" {
			t.Errorf("Confirm = %v, and %v is reported", err, own.Synced().All())
		}
	})
}
