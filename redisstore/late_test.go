package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// A server is frozen, a move of a room is given up, the server goes on: the move must not be carried out then. The
// second room shows what would happen to a request that does not say until when it counts.
func TestFrozenStoreCarriesNothingOutLate(t *testing.T) {
	fleet := storetest.StartAlone(t)
	from, to := storetest.At("a", 1000, 1), storetest.At("b", 1001, 2)
	// One client each: what is not sent over a connection that is there already is not sent at all.
	timed, untimed := open(t, patient(fleet.Server)), open(t, patient(fleet.Server))
	for room, store := range map[ring.RoomID]*Store{"timed": timed, "untimed": untimed} {
		if _, _, err := store.Claim(t.Context(), room, from, ""); err != nil {
			t.Fatal(err)
		}
	}
	fleet.Processes[0].Freeze(t)
	untimed.sole.clock.learn(0)
	for room, store := range map[ring.RoomID]*Store{"timed": timed, "untimed": untimed} {
		ctx := within(t, 300*time.Millisecond)
		if got, _, err := store.Swap(ctx, room, from, to, ""); err == nil {
			t.Errorf("a frozen store answered %v", got)
		}
		<-ctx.Done()
	}
	fleet.Processes[0].Thaw(t)
	testkit.Eventually(t, "untimed request to be carried out", func() bool {
		got, _, err := untimed.Get(t.Context(), "untimed")
		return err == nil && got == to
	})
	if got, _, err := timed.Get(t.Context(), "timed"); got != from || err != nil {
		t.Errorf("%v, %v: the room was moved after its mover had given up", got, err)
	}
	if got, _, err := timed.Swap(t.Context(), "timed", from, to, ""); got != to || err != nil {
		t.Errorf("the next move = %v, %v", got, err)
	}
}

// A clock that is set costs one round trip more, and no move.
func TestClockThatIsSetIsLearnedAgain(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		store, a, b, c := open(t, patient(server)), storetest.At("a", 1000, 1), storetest.At("b", 1001, 2), storetest.At("c", 1002, 2)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, _, err := store.Claim(ctx, "r", a, ""); err != nil {
			t.Fatal(err)
		}
		if store.sole.clock.latest(ctx) == 0 {
			t.Fatal("a claim did not teach the store's time")
		}
		if left := time.Until(time.UnixMicro(store.sole.clock.latest(ctx))); left > time.Minute || left < 30*time.Second {
			t.Errorf("a request that is waited for a minute counts for %v", left)
		}
		store.sole.clock.learn(time.Now().Add(-time.Hour).UnixMicro())
		before := store.RoundTrips()
		if got, _, err := store.Swap(ctx, "r", a, b, ""); got != b || err != nil || store.RoundTrips() != before+2 {
			t.Errorf("Swap = %v, %v in %d trips, want the new pin in two", got, err, store.RoundTrips()-before)
		}
		before = store.RoundTrips()
		if got, _, err := store.Swap(ctx, "r", b, c, ""); got != c || err != nil || store.RoundTrips() != before+1 {
			t.Errorf("the next Swap = %v, %v in %d trips, want one", got, err, store.RoundTrips()-before)
		}
	})
}

// The clock of a machine that is an hour off is not the clock of the epochs that it makes.
func TestNowIsTheStoresTime(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		store := open(t, patient(server))
		if off := time.Since(store.Now()).Abs(); off > time.Minute {
			t.Errorf("before the store has said anything the time is off by %v", off)
		}
		if _, _, err := store.Claim(t.Context(), "r", storetest.At("a", 1000, 1), ""); err != nil {
			t.Fatal(err)
		}
		if off := time.Since(store.Now()).Abs(); off > time.Minute {
			t.Errorf("off by %v from a store on this machine", off)
		}
		store.sole.clock.learn(time.Now().Add(-time.Hour).UnixMicro()) // As if it were on another.
		if off := (time.Since(store.Now()) - time.Hour).Abs(); off > time.Minute {
			t.Errorf("off by %v from the clock of a store that is an hour behind", off)
		}
	})
}
