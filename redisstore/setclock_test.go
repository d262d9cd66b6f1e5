package redisstore

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// How far, and for how long, the store's clock is ahead in these tests.
const (
	clockAhead = 10 * time.Minute
	aheadFor   = 6 * time.Second
)

// aheadOnEach runs during while the store's clock is ahead, a second after another, and then the rest.
func aheadOnEach(t *testing.T, before, during func(r waitingRig), after func(r waitingRig, clock *storetest.Clock)) {
	t.Helper()
	storetest.OnEachClock(t, func(t *testing.T, server storetest.Server, clock *storetest.Clock) {
		r := newWaitingRig(t, server)
		before(r)
		clock.Set(t, clockAhead)
		for range aheadFor / time.Second {
			clock.Pass(t, time.Second)
			during(r)
		}
		clock.Set(t, aheadFor)
		after(r, clock)
	})
}

// passChecked lets so many seconds pass in which people check in, and returns the last answer.
func (r waitingRig) passChecked(clock *storetest.Clock, seconds, limit int, who ...string) (last waitlist.Checked) {
	r.t.Helper()
	for range seconds {
		clock.Pass(r.t, time.Second)
		last = r.checkIn(limit, who...)
	}
	return last
}

// A room is not shut until the clock comes to where it once was: a larger cap and a moderator let people in.
func TestDoorOpensAfterTheClockWasAhead(t *testing.T) {
	aheadOnEach(t, func(r waitingRig) {
		r.show(map[string]string{"p-1": "ann"})
		r.enter(entry("bob", 1))
		r.enter(entry("cy", 1))
	}, func(r waitingRig) {
		r.checkIn(1, "bob", "cy")
	}, func(r waitingRig, clock *storetest.Clock) {
		if door := r.door(waitlist.Order{Deed: waitlist.Admit, Identity: "cy"}); !door.Done {
			t.Errorf("the door is %+v", door)
		}
		two := 2
		r.door(waitlist.Order{Deed: waitlist.Change, Cap: &two})
		if got := r.passChecked(clock, 4, 1, "cy", "bob"); !slices.Equal(got.Places, []int{waitlist.LetIn, 1}) {
			t.Errorf("4 s after the clock came right the places are %v, want that the moderator's choice is let in", got.Places)
		}
		many := 50
		r.door(waitlist.Order{Deed: waitlist.Change, Cap: &many})
		if got := r.checkIn(1, "bob"); got.Places[0] != waitlist.LetIn {
			t.Errorf("with 50 places bob is told %v", got.Places)
		}
		if got := r.enter(entry("dee", 1)); got.Outcome != waitlist.Admitted {
			t.Errorf("dee gets %+v", got)
		}
	})
}

// A reservation ends 15 s after the clock came right, and the line moves on, also where all began while the clock was ahead.
func TestReservationDoesNotOutliveAClockThatWasAhead(t *testing.T) {
	aheadOnEach(t, func(waitingRig) {}, func(r waitingRig) {
		r.enter(entry("ann", 1))
		r.enter(entry("bob", 1))
	}, func(r waitingRig, clock *storetest.Clock) {
		r.passChecked(clock, 17, 1, "bob")
		owner, err := pin.Parse(r.door(waitlist.Order{Deed: waitlist.Look}).Pin)
		r.must(err)
		if _, err := r.store.WriteRosters(t.Context(), []roster.Change{{Room: club, Pin: owner, Seq: 1}}); err != nil {
			t.Fatal(err)
		}
		r.passChecked(clock, 36, 1, "bob")
		if _, err := r.store.WriteRosters(t.Context(), []roster.Change{{Room: club, Pin: owner, Seq: 2}}); err != nil {
			t.Fatal(err)
		}
		if got := r.checkIn(1, "bob"); got.Places[0] != waitlist.LetIn {
			t.Errorf("bob is told %v after ann did not come", got.Places)
		}
	})
}

// A person who joined the line while the clock was ahead, and went, leaves it 10 s after the clock came right. A person who
// was turned away then is told so for as long.
func TestLineDropsWhoWentWhileTheClockWasAhead(t *testing.T) {
	aheadOnEach(t, func(r waitingRig) {
		r.show(map[string]string{"p-1": "ann"})
		r.enter(entry("bob", 1))
	}, func(r waitingRig) {
		r.enter(entry("gone", 1))
		r.enter(entry("turned", 1))
		r.checkIn(1, "bob")
		r.door(waitlist.Order{Deed: waitlist.Turn, Identity: "turned"})
	}, func(r waitingRig, clock *storetest.Clock) {
		if got := r.checkIn(1, "turned"); got.Places[0] != waitlist.TurnedAway {
			t.Errorf("who was turned away is told %v", got.Places)
		}
		r.passChecked(clock, 12, 1, "bob")
		if door := r.door(waitlist.Order{Deed: waitlist.Look}); door.Length != 1 || door.Line[0].Identity != "bob" {
			t.Errorf("12 s after the clock came right the line is %+v, want bob alone", door.Line)
		}
		if got := r.checkIn(1, "turned"); got.Places[0] != waitlist.Gone {
			t.Errorf("12 s later who was turned away is told %v", got.Places)
		}
	})
}

// A room for which no node had headroom is tried again when the clock comes right.
func TestHoldDoesNotOutliveAClockThatWasAhead(t *testing.T) {
	aheadOnEach(t, func(r waitingRig) { r.show(nil) }, func(r waitingRig) {
		hold := entry("ann", 1)
		hold.Hold = 30 * time.Second
		if got := r.enter(hold); got.Place.Reason != waitlist.NoCapacity {
			t.Errorf("ann gets %+v", got)
		}
	}, func(r waitingRig, clock *storetest.Clock) {
		if got := r.passChecked(clock, 4, 1, "ann"); got.Places[0] != waitlist.LetIn {
			t.Errorf("ann is told %v, %s", got.Places, got.Reason)
		}
	})
}

// Who left while the clock was ahead does not push those out who left since, and was not last seen in the future.
func TestLeavesOfAClockThatWasAhead(t *testing.T) {
	storetest.OnEachClock(t, func(t *testing.T, server storetest.Server, clock *storetest.Clock) {
		const room ring.RoomID = "room"
		store, p := open(t, server), storetest.At("a", 1000, 1)
		if _, _, err := store.Claim(t.Context(), room, p, ""); err != nil {
			t.Fatal(err)
		}
		writer := newBooks(store)
		book := writer.Open(room, p)
		comesAndGoes := func(who string) {
			book.Put(roster.Peer{ID: who, Identity: who})
			// Ahead, so that the leave is of this moment however late the machine is: the leaves of the clock that was ahead count as
			// of this moment, too, and of equal ones the one whose name is last stays.
			book.Drop(who, time.Now().Add(time.Minute))
			if err := writer.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		clock.Set(t, clockAhead)
		for i := range roster.MaxLeft {
			comesAndGoes("ahead-" + string(rune('0'+i)))
		}
		clock.Set(t, aheadFor)
		comesAndGoes("late")
		found, err := store.Roster(t.Context(), room)
		if err != nil {
			t.Fatal(err)
		}
		now, err := server.Raw.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(found.Left, func(l roster.Leave) bool { return l.Peer.Identity == "late" }) {
			t.Error("the latest leave is not in the roster")
		}
		for _, l := range found.Left {
			if l.LastSeen.After(now) {
				t.Fatalf("%s was last seen %v from now", l.Peer.Identity, l.LastSeen.Sub(now))
			}
		}
	})
}

// A user whose node died while the clock was ahead is offline a TTL and some sweeps after it came right; the others stay
// online, and nobody was last seen in the future.
func TestGhostsOfAClockThatWasAhead(t *testing.T) {
	storetest.OnEachClock(t, func(t *testing.T, server storetest.Server, clock *storetest.Clock) {
		r := presenceRig{t, server.Raw, open(t, server).Presence(presence.DefaultTiming())}
		ctx, here := t.Context(), []presence.Lease{lease("ann", "1", "")}
		live := func(d time.Duration) {
			for ; d > 0; d -= time.Second {
				clock.Pass(t, time.Second)
				if missing, err := r.Renew(ctx, here); err != nil || len(missing) > 0 {
					t.Fatalf("missing %v, %v", missing, err)
				}
				r.must(r.Sweep(ctx))
			}
		}
		r.must(r.Add(ctx, here))
		live(20 * time.Second)
		clock.Set(t, clockAhead)
		r.must(r.Add(ctx, []presence.Lease{lease("ghost", "1", ""), lease("left", "1", "")}))
		r.must(r.Remove(ctx, []presence.Lease{lease("left", "1", "")}))
		live(aheadFor)
		_, err := r.Renew(ctx, []presence.Lease{lease("ghost", "1", "")})
		r.must(err)
		clock.Set(t, 26*time.Second)
		live(50 * time.Second)
		r.is("ann", presence.Online)
		r.saysOf("ann", "+")
		r.is("ghost", presence.Offline)
		now, err := server.Raw.Time(ctx).Result()
		r.must(err)
		for _, user := range []string{"ghost", "left"} {
			if seen := r.ask(user).LastSeen; seen.After(now) {
				t.Errorf("%s was last seen %v from now", user, seen.Sub(now))
			}
		}
	})
}

func newBooks(store *Store) *roster.Writer {
	w := roster.NewWriter(panics.New(), slog.New(slog.DiscardHandler))
	w.Store = store
	return w
}

// A clock that is set forward by over an hour ends all pins, which is a loss of data: no claim after it is in an incarnation
// in which owners were synced. A smaller step, and the way back, end none.
func TestExpiryOfAllPinsEndsTheIncarnation(t *testing.T) {
	storetest.OnEachClock(t, func(t *testing.T, server storetest.Server, clock *storetest.Clock) {
		store, ctx, was := open(t, server), t.Context(), storetest.At("a", 1000, 1)
		first := present(t, store)
		claim := func(want pin.Pin, p pin.Pin) pin.Incarnation {
			t.Helper()
			got, in, err := store.Claim(ctx, "room", p, "")
			if err != nil || got != want {
				t.Fatalf("the claim is %v, %v, want %v", got, err, want)
			}
			return in
		}
		claim(was, was)
		clock.Set(t, 20*time.Second)
		if in := claim(was, storetest.At("b", 1001, 2)); !first.Has(in) {
			t.Errorf("20 s ahead the incarnation is %x, want %x", in, first.All())
		}
		present(t, store)
		now := storetest.At("b", 2000, 2)
		clock.Set(t, pinTTL+time.Minute)
		if in := claim(now, now); first.Has(in) {
			t.Errorf("the pins expired, and the claim of one is in incarnation %x as before", in)
		}
		second := present(t, store)
		if first == second {
			t.Errorf("the pins expired, and the incarnation is %x as before", second.All())
		}
		for range 3 {
			clock.Set(t, 0)
			if in := claim(now, was); !second.Has(in) {
				t.Errorf("after the way back the incarnation is %x, want %x", in, second.All())
			}
			clock.Pass(t, markerTTL/2)
			if again := present(t, store); again != second {
				t.Errorf("incarnations %x follow %x though they were asked for in time", again.All(), second.All())
			}
		}
	})
}

// A node has the store's clock within seconds of its being set, also where nobody joins.
func TestClockThatIsSetIsLearned(t *testing.T) {
	storetest.OnEachClock(t, func(t *testing.T, server storetest.Server, clock *storetest.Clock) {
		store := open(t, server)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- store.Run(ctx) }()
		for _, ahead := range []time.Duration{0, clockAhead, 0} {
			clock.Set(t, ahead)
			testkit.Eventually(t, "the store's clock", func() bool {
				now, err := server.Raw.Time(ctx).Result()
				return err == nil && store.Now().Sub(now).Abs() < clockAhead/2
			})
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
