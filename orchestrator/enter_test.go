package orchestrator

import (
	"errors"
	"testing"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// syncedWith is a view of a, b and c that have all written pins and rosters to the store.
func syncedWith(t *testing.T, store *redisstore.Store) *views {
	t.Helper()
	all, err := store.Incarnations(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return fixed(reporting(all[0]))
}

func enterAs(who string, limit int) waitlist.Entry {
	return waitlist.Entry{Identity: who, Cap: limit, Wait: true}
}

// A room with a cap is entered in one round trip, one without a cap is placed in one. Who knows of no cap hears of the door.
func TestEnterIsOneRoundTrip(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		store := onRedis(t, server)
		signaling := New(store, syncedWith(t, store), new(addresses), patient(), quiet)
		for _, step := range []struct {
			what string
			want error
			do   func() error
		}{
			{"a room without a cap", nil, func() error { _, err := signaling.Place(t.Context(), "plain", headroom.Room{}); return err }},
			{"the first person", nil, func() error { return enterOnly(t, signaling, "ann") }},
			{"a second tab", nil, func() error { return enterOnly(t, signaling, "ann") }},
			{"a full room", new(waitlist.WaitError), func() error { return enterOnly(t, signaling, "bob") }},
			{"who knows of no cap", waitlist.ErrDoor, func() error { _, err := signaling.Place(t.Context(), class, headroom.Room{}); return err }},
		} {
			before := store.RoundTrips()
			err := step.do()
			if _, waits := errors.AsType[*waitlist.WaitError](err); !errors.Is(err, step.want) && !waits || waits != (step.what == "a full room") {
				t.Errorf("%s: %v", step.what, err)
			}
			if n := store.RoundTrips() - before; n != 1 {
				t.Errorf("%s took %d round trips", step.what, n)
			}
		}
	})
}

func enterOnly(t *testing.T, signaling *Orchestrator, who string) error {
	t.Helper()
	p, _, err := signaling.Enter(t.Context(), class, headroom.Room{}, enterAs(who, 1))
	if (err == nil) == p.IsZero() {
		t.Errorf("%s gets %v, %v", who, p, err)
	}
	return err
}

// A store that forgot everything lets nobody in before the room's node has said who is there.
func TestEnterAfterDataLoss(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		store := onRedis(t, server)
		seen := syncedWith(t, store)
		signaling := New(store, seen, new(addresses), patient(), quiet)
		if err := server.Raw.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Incarnations(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, answer, err := signaling.Enter(t.Context(), class, headroom.Room{}, enterAs("ann", 1))
		if !errors.Is(err, ErrStoreUnavailable) || answer.Outcome != waitlist.Admitted {
			t.Errorf("ann gets %+v, %v", answer, err)
		}
		// Her reservation proves nothing: the release may be lost, and the line lets people in by reservations too.
		_, answer, err = signaling.Enter(t.Context(), class, headroom.Room{}, enterAs("ann", 1))
		if !errors.Is(err, ErrStoreUnavailable) || answer.Outcome != waitlist.Admitted {
			t.Errorf("ann comes again and gets %+v, %v", answer, err)
		}
		if _, err := store.Door(t.Context(), class, waitlist.Order{Deed: waitlist.Release, Identity: "ann"}); err != nil {
			t.Fatal(err)
		}
		seen.Store(syncedWith(t, store).View())
		if p, _, err := signaling.Enter(t.Context(), class, headroom.Room{}, enterAs("bob", 1)); p.IsZero() || err != nil {
			t.Errorf("bob gets %v, %v once the nodes are synced", p, err)
		}
	})
}

// The owner writes its roster while it is asked whether it has the room open: what the door said before that is not believed.
func TestEnterWhileTheOwnerWritesItsRoster(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		store := onRedis(t, server)
		where, seen := &addresses{holds: make(map[string]map[ring.RoomID]pin.Pin)}, syncedWith(t, store)
		where.open("b", class, pinAt("b", 1, 5000, 7))
		where.then = func() { seen.Store(syncedWith(t, store).View()) }
		if err := server.Raw.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Incarnations(t.Context()); err != nil {
			t.Fatal(err)
		}
		signaling := New(store, seen, where, patient(), quiet)
		if p, answer, err := signaling.Enter(t.Context(), class, headroom.Room{}, enterAs("ann", 1)); !errors.Is(err, ErrStoreUnavailable) {
			t.Errorf("ann gets %v, %+v, %v", p, answer, err)
		}
	})
}

// A corrupt pin lets nobody in whom the door keeps out.
func TestEnterByACorruptPin(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		store := onRedis(t, server)
		signaling := New(store, syncedWith(t, store), new(addresses), patient(), quiet)
		for _, who := range []string{"ann", "bob"} {
			if err := server.Raw.Set(t.Context(), keyOf(class), "garbage", 0).Err(); err != nil {
				t.Fatal(err)
			}
			if err := enterOnly(t, signaling, who); (err == nil) != (who == "ann") {
				t.Errorf("%s: %v", who, err)
			}
		}
	})
}

// Without a store a person who is not in the room yet is not let in, though the pin is known.
func TestEnterWithoutStore(t *testing.T) {
	signaling, store, _, _ := forgetful(2)
	if _, err := signaling.Place(t.Context(), class, headroom.Room{}); err != nil {
		t.Fatal(err)
	}
	store.Fail(errors.New("it is away"))
	if p, err := signaling.Place(t.Context(), class, headroom.Room{}); p.IsZero() || err != nil {
		t.Errorf("without a cap the store is not needed: %v, %v", p, err)
	}
	if p, a, err := signaling.Enter(t.Context(), class, headroom.Room{}, enterAs("ann", 1)); p != (pin.Pin{}) || a.Outcome >= waitlist.Admitted || !errors.Is(err, ErrStoreUnavailable) {
		t.Errorf("ann gets %v, %+v, %v", p, a, err)
	}
}
