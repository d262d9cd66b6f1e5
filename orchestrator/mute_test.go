package orchestrator

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// frozen is a Prober whose node b accepts connections and answers nothing.
type frozen struct{ *addresses }

func (f frozen) Holds(ctx context.Context, control string, room ring.RoomID) (pin.Pin, error) {
	if control == "b.test:7000" {
		<-ctx.Done()
		return pin.Pin{}, ctx.Err()
	}
	return f.addresses.Holds(ctx, control, room)
}

// withMuteNode is a signaling node on a store that has just lost its data, while b is mute.
func withMuteNode(t *testing.T) (*Orchestrator, *testkit.MemoryStore, *addresses) {
	signaling, store, where, _ := forgetful(1)
	return New(store, signaling.views, frozen{where}, DefaultConfig(), quiet), store, where
}

// After a data loss one mute node delays the joins of new rooms by a second, and stops none.
func TestMuteNodeStopsNoJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signaling, store, _ := withMuteNode(t)
		began := time.Now()
		got, err := signaling.Place(t.Context(), class, headroom.Room{})
		if took := time.Since(began); err != nil || store.Stands(class) != got.Encode() || took > 2*time.Second {
			t.Fatalf("Place = %v, %v after %v, want the claim to stand within 2 s", got, err, took)
		}
		// Nobody has said that the mute node does not have the room: the next join asks again.
		if signaling.cache.IsVerified(class, got, store.Incarnation()) {
			t.Error("a claim counts as verified though one node did not answer")
		}
	})
}

// A room on a node that answers is joined sooner: the cached owner is asked first.
func TestMuteNodeHardlyDelaysAnOpenRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signaling, _, where := withMuteNode(t)
		held := pinAt("c", 1, 5000, 7)
		signaling.cache.Note(class, held)
		where.open("c", class, held)
		began := time.Now()
		got, err := signaling.Place(t.Context(), class, headroom.Room{})
		if took := time.Since(began); err != nil || got.Boot != held.Boot || took > 900*time.Millisecond {
			t.Fatalf("Place = %v, %v after %v, want c, which has the room open, in less than a second", got, err, took)
		}
	})
}

// Without a store a frozen node keeps nobody out of a room that the store showed lately.
func TestMuteNodeStopsNoJoinWithoutAStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signaling, store, _ := withMuteNode(t)
		held := pinAt("c", 1, 5000, 7)
		signaling.cache.Verified(class, held, 1)
		store.Fail(errors.New("the store is away"))
		began := time.Now()
		if got, err := signaling.Place(t.Context(), class, headroom.Room{}); err != nil || got != held || time.Since(began) > 2*time.Second {
			t.Fatalf("Place = %v, %v after %v, want %v within 2 s", got, err, time.Since(began), held)
		}
	})
}

// Every write is refused (NOREPLICAS, MISCONF, READONLY): people join pinned rooms through a signaling node that
// never heard of them.
func TestPinnedRoomIsJoinedWhileWritesAreRefused(t *testing.T) {
	signaling, store, _, _ := forgetful(2)
	stands := pinAt("c", 1, 5000, 7)
	store.Put(class, stands.Encode())
	store.RefuseWrites(true)
	if got, err := signaling.Place(t.Context(), class, headroom.Room{}); err != nil || got != stands {
		t.Fatalf("Place = %v, %v, want the pin that stands", got, err)
	}
	if got, err := signaling.Place(t.Context(), "new", headroom.Room{}); err == nil {
		t.Fatalf("a new room was placed at %v, which nobody can know", got)
	}
}
