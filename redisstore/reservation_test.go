package redisstore

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

func entryOf(who, peer string, limit int) waitlist.Entry {
	e := entry(who, limit)
	e.Peer = peer
	return e
}

// owner is club's media node, which writes the roster.
func (r waitingRig) owner() (*roster.Writer, *roster.Book) {
	r.t.Helper()
	_, _, err := r.store.Claim(r.t.Context(), club, storetest.At("a", 1000, 1), "")
	if !errors.Is(err, waitlist.ErrDoor) {
		r.must(err)
	}
	writer := roster.NewWriter(panics.New(), slog.New(slog.DiscardHandler))
	writer.Store = r.store
	return writer, writer.Open(club, storetest.At("a", 1000, 1))
}

// Who leaves before the roster has them frees the place with the next write; the reservation of another of their tabs, which is on
// its way, stays.
func TestLeavingAtOnceFreesThePlace(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		for _, tabs := range []int{1, 2} {
			r := newWaitingRig(t, patient(server))
			r.must(r.raw.FlushAll(t.Context()).Err())
			r.enter(entryOf("ann", "ann-1", 1))
			if tabs == 2 {
				r.enter(entryOf("ann", "ann-2", 1))
			}
			r.enter(entryOf("bob", "bob-1", 1))
			writer, book := r.owner()
			book.Put(roster.Peer{ID: "ann-1", Identity: "ann"})
			book.Drop("ann-1", time.Now())
			r.must(writer.Flush(t.Context()))
			want := map[int]int{1: waitlist.LetIn, 2: 1}[tabs]
			if got := r.checkIn(1, "bob"); got.Places[0] != want {
				t.Errorf("with %d tabs of ann, one of which has left, bob is told %d, want %d", tabs, got.Places[0], want)
			}
		}
	})
}

// Who was let in from the line makes the reservation its own by entering, and then frees it as quickly by leaving. A release takes no
// other's place.
func TestAReservationIsOfOnePeer(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		r := newWaitingRig(t, patient(server))
		writer, book := r.owner()
		r.must(writer.Flush(t.Context()))
		r.enter(entryOf("ann", "ann-1", 1))
		r.enter(entryOf("bob", "bob-1", 1))
		r.door(waitlist.Order{Deed: waitlist.Release, Identity: "ann", Peer: "ann-2"})
		if got := r.checkIn(1, "bob"); got.Places[0] != 1 {
			t.Errorf("bob is told %d after the release of a reservation that is not there", got.Places[0])
		}
		r.door(waitlist.Order{Deed: waitlist.Release, Identity: "ann", Peer: "ann-1"})
		if got := r.checkIn(1, "bob"); got.Places[0] != waitlist.LetIn {
			t.Errorf("bob is told %d after ann's release", got.Places[0])
		}
		if got := r.enter(entryOf("bob", "bob-1", 1)); got.Outcome != waitlist.Inside {
			t.Errorf("bob enters: %+v", got)
		}
		r.enter(entryOf("cy", "cy-1", 1))
		book.Put(roster.Peer{ID: "bob-1", Identity: "bob"})
		book.Drop("bob-1", time.Now())
		r.must(writer.Flush(t.Context()))
		if got := r.checkIn(1, "cy"); got.Places[0] != waitlist.LetIn {
			t.Errorf("cy is told %d after bob, let in from the line, has left", got.Places[0])
		}
	})
}

// The first cap that a token shows in a running room stops nobody. Only where the store has had the roster for less than 3 s, as after
// data loss, are people refused, and told that it is for a moment.
func TestFirstCapOfARunningRoom(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		r := newWaitingRig(t, patient(server))
		refusedFor := func(who string, limit int, want waitlist.Reason) {
			t.Helper()
			e := entryOf(who, who+"-1", limit)
			e.Wait = false
			if got := r.enter(e); got.Outcome != waitlist.Refused || got.Place.Reason != want {
				t.Errorf("%s gets %+v, want refused: %s", who, got, want)
			}
		}
		open := func() {
			t.Helper()
			r.must(r.raw.FlushAll(t.Context()).Err())
			writer, book := r.owner()
			book.Put(roster.Peer{ID: "ann-1", Identity: "ann"})
			r.must(writer.Flush(t.Context()))
			book.Put(roster.Peer{ID: "bob-1", Identity: "bob"})
			r.must(writer.Flush(t.Context()))
		}
		open()
		refusedFor("cy", 3, waitlist.Settling)
		refusedFor("dee", 2, waitlist.Full)

		open()
		r.must(r.raw.HIncrBy(t.Context(), r.key("roster"), "@began", -3001).Err())
		if got := r.enter(entryOf("cy", "cy-1", 3)); got.Outcome != waitlist.Admitted {
			t.Errorf("cy gets %+v", got)
		}
		refusedFor("dee", 3, waitlist.Full)
	})
}

// A reservation that the store makes while it has forgotten who is in a full room ends when the room's media node has written
// its roster, though the release of the reservation is lost. In a new room such a reservation stays.
func TestAReservationWithoutARosterEndsInAFullRoom(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		for _, full := range []bool{true, false} {
			r := newWaitingRig(t, patient(server))
			r.must(r.raw.FlushAll(t.Context()).Err())
			if got := r.enter(entryOf("bob", "bob-1", 2)); got.Outcome != waitlist.Admitted || got.Roster {
				t.Fatalf("bob gets %+v", got)
			}
			writer, book := r.owner()
			book.Put(roster.Peer{ID: "ann-1", Identity: "ann"})
			if full {
				book.Put(roster.Peer{ID: "ada-1", Identity: "ada"})
			}
			r.must(writer.Flush(t.Context()))
			want := waitlist.Inside
			if full {
				want = waitlist.Waiting
			}
			if got := r.enter(entryOf("bob", "bob-1", 2)); got.Outcome != want {
				t.Errorf("full is %t, and bob comes again and gets %+v, want outcome %d", full, got, want)
			}
		}
	})
}

// A leaving person's place is kept only where the store knows that the person is in the room.
func TestAForgottenPlaceIsNotKept(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		r := newWaitingRig(t, patient(server))
		for _, known := range []bool{true, false} {
			if known {
				r.show(map[string]string{"p-1": "ann"})
			} else {
				r.must(r.raw.FlushAll(t.Context()).Err())
			}
			if door := r.door(waitlist.Order{Deed: waitlist.Keep, Identity: "ann"}); door.Done != known {
				t.Errorf("the store knows ann: %t, and the place is kept: %t", known, door.Done)
			}
		}
	})
}
