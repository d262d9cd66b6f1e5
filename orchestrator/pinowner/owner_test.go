package pinowner

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

var (
	pinAt = testkit.PinAt
	quiet = testkit.Quiet()
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// withOwner runs test with a pin owner of one room, in a bubble of its own time.
func withOwner(t *testing.T, cfg Config, test func(t *testing.T, own *Owner, s *testkit.MemoryStore, r *testkit.Rooms, ours pin.Pin)) {
	synctest.Test(t, func(t *testing.T) {
		ours, s := pinAt("a", 1, 5000, 5), testkit.NewMemoryStore()
		r := testkit.NewRooms(pin.Holding{Room: "r", Pin: ours})
		s.Put("r", ours.Encode())
		own := New(s, r, cfg, quiet)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- own.Run(ctx) }()
		synctest.Wait()
		test(t, own, s, r, ours)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
}

// after lets d pass, and everything that is due in it happen.
func after(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestOwnerPutsOursBackAndIsFencedByHigher(t *testing.T) {
	higher, equalEpoch := pinAt("b", 1, 5001, 1), pinAt("b", 1, 5000, 6)
	lower, lowerNonce := pinAt("b", 1, 4999, 9), pinAt("b", 1, 5000, 4)
	for name, c := range map[string]refreshCase{
		"nothing changed":           {found: pinAt("a", 1, 5000, 5).Encode()},
		"missing":                   {found: "", gone: true},
		"lower epoch":               {found: lower.Encode()},
		"equal epoch, lower nonce":  {found: lowerNonce.Encode()},
		"damaged":                   {found: "garbage", gone: true},
		"higher epoch":              {found: higher.Encode(), by: higher},
		"equal epoch, higher nonce": {found: equalEpoch.Encode(), by: equalEpoch, alone: true}, // or it is reclaimed
	} {
		t.Run("refresh/"+name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Majority = func() bool { return !c.alone }
			withOwner(t, cfg, func(t *testing.T, _ *Owner, s *testkit.MemoryStore, r *testkit.Rooms, ours pin.Pin) {
				s.Put("r", c.found)
				after(6 * time.Second) // one refresh
				c.check(t, s, r, ours)
			})
		})
		if c.found != "" && c.by.IsZero() && c.found != pinAt("a", 1, 5000, 5).Encode() {
			c.gone = true // A lower one says as little as nothing does.
		}
		t.Run("confirm/"+name, func(t *testing.T) {
			withOwner(t, DefaultConfig(), func(t *testing.T, own *Owner, s *testkit.MemoryStore, r *testkit.Rooms, _ pin.Pin) {
				ours := pinAt("a", 1, 5000, 5)
				r.Open() // It is not open here, so no refresh touches it.
				after(confirmedFor)
				s.Put("r", c.found)
				err := own.Confirm(t.Context(), "r", ours)
				if c.gone {
					if !errors.Is(err, pin.ErrMissing) || errors.Is(err, pin.ErrFenced) || s.Stands("r") != c.found || len(r.Fenced()) != 0 {
						t.Errorf("Confirm = %v, %q stands, the holder was told %v: want that nothing is concluded", err, s.Stands("r"), r.Fenced())
					}
					if opening := openingOf(t, own, "r"); !opening.IsZero() {
						t.Errorf("the room is about to open under %v", opening)
					}
					return
				}
				c.check(t, s, r, ours)
				var fenced *pin.FencedError
				if c.by.IsZero() != (err == nil) || err != nil && (!errors.As(err, &fenced) || fenced.Current != c.by || !errors.Is(err, pin.ErrFenced)) {
					t.Errorf("Confirm = %v", err)
				}
			})
		})
	}
}

// refreshCase is what the store holds at a refresh, and the end.
type refreshCase struct {
	found string  // empty: nothing
	by    pin.Pin // the pin that fences ours; zero: ours stands
	gone  bool    // unknown: it must be placed again
	alone bool    // we see a minority of the cluster
}

// check compares what stands and what the holder was told.
func (c refreshCase) check(t *testing.T, s *testkit.MemoryStore, r *testkit.Rooms, ours pin.Pin) {
	t.Helper()
	want, told := ours.Encode(), r.Fenced()
	switch {
	case !c.by.IsZero():
		want = c.by.Encode()
	case c.found == "garbage":
		want = c.found // It may have been a higher one. Who comes to join can ask everybody.
	}
	if got := s.Stands("r"); got != want {
		t.Errorf("%q stands, want %q", got, want)
	}
	if fenced := len(told) == 1 && told[0] == (pin.Holding{Room: "r", Pin: c.by}); fenced == c.by.IsZero() || len(told) > 1 {
		t.Errorf("the holder was told %v", told)
	}
}

func TestConfirmAsksTheStoreOnlyWhenItMust(t *testing.T) {
	withOwner(t, DefaultConfig(), func(t *testing.T, own *Owner, s *testkit.MemoryStore, _ *testkit.Rooms, ours pin.Pin) {
		before := s.Calls()
		for range 10 {
			if err := own.Confirm(t.Context(), "r", ours); err != nil {
				t.Fatal(err)
			}
		}
		if s.Calls() != before {
			t.Errorf("%d calls to the store for a pin just refreshed", s.Calls()-before)
		}
		other := ours
		other.Fence.Epoch++
		s.Put("r2", other.Encode())
		if err := own.Confirm(t.Context(), "r2", other); err != nil || s.Calls() != before+1 {
			t.Errorf("a room never seen: Confirm = %v with %d calls, want one", err, s.Calls()-before)
		}
	})
}

func TestOwnerWithoutAStore(t *testing.T) {
	majority := true
	cfg := DefaultConfig()
	cfg.Majority = func() bool { return majority }
	withOwner(t, cfg, func(t *testing.T, own *Owner, s *testkit.MemoryStore, r *testkit.Rooms, ours pin.Pin) {
		s.Fail(errors.New("the store is away"))
		majority = false
		after(9 * time.Second)
		if err := own.Confirm(t.Context(), "r", ours); err != nil {
			t.Errorf("9 s after the store went away: %v, want the last confirmation to count", err)
		}
		after(9 * time.Second)
		if err := own.Confirm(t.Context(), "r", ours); !errors.Is(err, pin.ErrUnconfirmed) {
			t.Errorf("18 s after, in a minority: %v, want ErrUnconfirmed", err)
		}
		majority = true
		if err := own.Confirm(t.Context(), "r", ours); err != nil {
			t.Errorf("18 s after, in a majority: %v, want nil", err)
		}
		own.cfg.Majority = nil
		if err := own.Confirm(t.Context(), "r", ours); !errors.Is(err, pin.ErrUnconfirmed) {
			t.Errorf("18 s after, knowing nothing of gossip: %v, want ErrUnconfirmed", err)
		}
		if len(r.Fenced()) != 0 {
			t.Errorf("rooms were closed because the store is away: %v", r.Fenced())
		}
		s.Fail(nil)
		after(6 * time.Second)
		before := s.Calls()
		if err := own.Confirm(t.Context(), "r", ours); err != nil || s.Calls() != before {
			t.Errorf("after the store came back: %v, %d calls, want the refresh to have confirmed", err, s.Calls()-before)
		}
	})
}

// A store that answers too late must not look like a pause, nor block what is bounded.
func TestHangingStoreIsNoPause(t *testing.T) {
	withOwner(t, DefaultConfig(), func(t *testing.T, own *Owner, s *testkit.MemoryStore, _ *testkit.Rooms, ours pin.Pin) {
		s.Slow(time.Hour)
		after(14 * time.Second)
		if own.pauses != 0 {
			t.Error("waiting for the store was taken for a pause of the process")
		}
		after(2 * time.Second)
		began := time.Now()
		if err := own.Confirm(t.Context(), "r", ours); !errors.Is(err, pin.ErrUnconfirmed) || time.Since(began) > time.Second {
			t.Errorf("Confirm = %v after %v, want ErrUnconfirmed after 0.3 s", err, time.Since(began))
		}
	})
}

// After SIGCONT a new peer may come first: no confirmation from before the pause counts.
func TestPauseTakesConfirmationsBack(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Majority = func() bool { return true }
	synctest.Test(t, func(t *testing.T) {
		ours, higher, s := pinAt("a", 1, 5000, 5), pinAt("b", 1, 5001, 1), testkit.NewMemoryStore()
		r := testkit.NewRooms(pin.Holding{Room: "r", Pin: ours})
		own := New(s, r, cfg, quiet)
		s.Put("r", ours.Encode())
		if err := own.Confirm(t.Context(), "r", ours); err != nil {
			t.Fatal(err)
		}
		// Run is not running, as in a stopped process.
		<-time.After(4 * time.Second)
		s.Put("r", higher.Encode())
		if err := own.Confirm(t.Context(), "r", ours); !errors.Is(err, pin.ErrFenced) {
			t.Errorf("after a pause of 4 s Confirm = %v, want ErrFenced", err)
		}
		if len(own.kick) != 1 {
			t.Error("a pause did not ask for a refresh at once")
		}
		// The store is away too: our view is as old as the pause.
		s.Fail(errors.New("the store is away"))
		if err := own.Confirm(t.Context(), "r", ours); !errors.Is(err, pin.ErrUnconfirmed) {
			t.Errorf("right after a pause, without a store, Confirm = %v, want ErrUnconfirmed", err)
		}
		for range 30 { // The process runs again for longer than the majority rests.
			<-time.After(500 * time.Millisecond)
			own.noticePause()
		}
		if err := own.Confirm(t.Context(), "r", ours); err != nil {
			t.Errorf("long after a pause, in a majority, Confirm = %v", err)
		}
	})
}

// An answer that spans a pause confirms nothing.
func TestAnswerFromBeforeAPauseConfirmsNothing(t *testing.T) {
	own := New(testkit.NewMemoryStore(), testkit.NewRooms(), DefaultConfig(), quiet)
	ours := pin.Holding{Room: "r", Pin: pinAt("a", 1, 5000, 5)}
	own.noticePause()
	began, pauses := own.start()
	own.heartbeat = own.heartbeat.Add(-2 * pauseGap)
	own.noticePause()
	own.confirm(ours, began, pauses, true)
	if own.confirmation(ours.Room).pin == ours.Pin {
		t.Error("it did")
	}
}

func TestOwnerRefreshesAfterAPauseAtOnce(t *testing.T) {
	withOwner(t, DefaultConfig(), func(t *testing.T, own *Owner, s *testkit.MemoryStore, r *testkit.Rooms, _ pin.Pin) {
		higher := pinAt("b", 1, 5001, 1)
		s.Put("r", higher.Encode())
		own.mu.Lock()
		own.heartbeat = own.heartbeat.Add(-20 * time.Second)
		own.mu.Unlock()
		after(heartbeatEvery)
		if told := r.Fenced(); len(told) != 1 || told[0].Pin != higher {
			t.Errorf("%v after a pause the holder was told %v, want the higher pin", heartbeatEvery, told)
		}
	})
}

func TestConfirmationsAreBoundedByWhatIsHeld(t *testing.T) {
	withOwner(t, DefaultConfig(), func(t *testing.T, own *Owner, _ *testkit.MemoryStore, _ *testkit.Rooms, ours pin.Pin) {
		for i := range 500 {
			_ = own.Confirm(t.Context(), ring.RoomID(rune(0x4e00+i)), ours)
		}
		after(confirmedFor + 6*time.Second)
		own.mu.Lock()
		defer own.mu.Unlock()
		if len(own.confirmed) != 1 {
			t.Errorf("%d confirmations are kept for one room", len(own.confirmed))
		}
	})
}

// A confirmation from before a room closed says nothing about its opening again: the store is asked, and the pin read
// again after the opening.
func TestOpeningIsAlwaysAskedFor(t *testing.T) {
	withOwner(t, DefaultConfig(), func(t *testing.T, own *Owner, s *testkit.MemoryStore, r *testkit.Rooms, ours pin.Pin) {
		r.Open() // The last peer left a moment after the refresh.
		higher := pinAt("b", 1, 5001, 1)
		s.Put("r", higher.Encode())
		if err := own.Confirm(t.Context(), "r", ours); !errors.Is(err, pin.ErrFenced) {
			t.Fatalf("Confirm = %v, want ErrFenced", err)
		}
		old, before := pinAt("a", 1, 4000, 1), s.Calls()
		s.Put("r", old.Encode()) // The store has gone back.
		var fenced *pin.FencedError
		if err := own.Confirm(t.Context(), "r", old); !errors.As(err, &fenced) || fenced.Current != ours || s.Calls() != before {
			t.Fatalf("Confirm of a pin below one that was served here = %v, want that %v is higher", err, ours)
		}
		s.Put("r", ours.Encode())
		if err := own.Confirm(t.Context(), "r", ours); err != nil || openingOf(t, own, "r") != ours {
			t.Fatalf("Confirm = %v, about to open under %v", err, openingOf(t, own, "r"))
		}
		r.Open(pin.Holding{Room: "r", Pin: ours})
		s.Put("r", higher.Encode()) // It moves between Confirm and the opening.
		after(recheckAfter)
		if told := r.Fenced(); len(told) != 1 || told[0].Pin != higher {
			t.Errorf("%v after the opening the holder was told %v, want the higher pin", recheckAfter, told)
		}
	})
}

// A store that comes back empty has its pins within a second, however late the next refresh is.
func TestOwnerNoticesALossSoon(t *testing.T) {
	withOwner(t, DefaultConfig(), func(t *testing.T, own *Owner, s *testkit.MemoryStore, _ *testkit.Rooms, ours pin.Pin) {
		s.Lose()
		after(checkEvery)
		if s.Stands("r") != ours.Encode() || !own.Synced().Has(s.Incarnation()) {
			t.Errorf("%v after the loss %q stands, synced in %v", checkEvery, s.Stands("r"), own.Synced().All())
		}
	})
}

// A majority vouches for an owner without a store, but not against the store's answer, and not for a pin below one
// served here.
func TestMajorityStandsInOnlyForAStoreThatIsNotHeard(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Majority = func() bool { return true }
	withOwner(t, cfg, func(t *testing.T, own *Owner, s *testkit.MemoryStore, r *testkit.Rooms, ours pin.Pin) {
		s.Put("r", "damage")
		after(confirmedFor)
		if err := own.Confirm(t.Context(), "r", ours); !errors.Is(err, pin.ErrMissing) {
			t.Errorf("Confirm of a damaged pin = %v, want that the room is to be placed again, which heals it", err)
		}
		s.Put("r", ours.Encode())
		s.Fail(errors.New("the store is away"))
		r.Open()
		higher := pinAt("a", 1, 6000, 1)
		if err := own.Confirm(t.Context(), "r", higher); !errors.Is(err, pin.ErrUnconfirmed) {
			t.Fatalf("Confirm = %v as soon as one answer is missing, want that it is to be asked again", err)
		}
		after(silentFor)
		if err := own.Confirm(t.Context(), "r", higher); err != nil {
			t.Fatalf("Confirm = %v %v after the last answer, want that the majority vouches", err, silentFor)
		}
		var fenced *pin.FencedError
		if err := own.Confirm(t.Context(), "r", ours); !errors.As(err, &fenced) || fenced.Current != higher {
			t.Errorf("Confirm = %v, want that %v was let in here", err, higher)
		}
		s.Lose()
		s.Fail(nil)
		after(10 * time.Second)
		if s.Stands("r") != "" {
			t.Errorf("the store has %q: a pin that only a majority has vouched for was synced", s.Stands("r"))
		}
	})
}
