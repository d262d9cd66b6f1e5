package pinowner

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
)

// TestARefreshThatBreaksIsDoneAgain: the pins are confirmed by the next one.
func TestARefreshThatBreaksIsDoneAgain(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Panics = panics.New()
	withOwner(t, cfg, func(t *testing.T, own *Owner, s *testkit.MemoryStore, _ *testkit.Rooms, ours pin.Pin) {
		s.Meanwhile(func() { panic("of a test") })
		s.Lose()
		after(checkEvery)
		if n := cfg.Panics.Count(); n < 1 || n > uint64(checkEvery/retryEvery)+1 || s.Stands("r") != "" {
			t.Fatalf("%d panics are counted and %q stands, want that refreshing breaks, and not in a tight loop", n, s.Stands("r"))
		}
		s.Meanwhile(nil)
		after(checkEvery)
		if s.Stands("r") != ours.Encode() || !own.Synced().Has(s.Incarnation()) {
			t.Errorf("%q stands afterwards, synced in %v", s.Stands("r"), own.Synced().All())
		}
	})
}

// TestAConfirmationThatBreaksKeepsNobodyWaiting: its caller recovers, and whoever asks what is opening gets an answer.
func TestAConfirmationThatBreaksKeepsNobodyWaiting(t *testing.T) {
	withOwner(t, DefaultConfig(), func(t *testing.T, own *Owner, s *testkit.MemoryStore, r *testkit.Rooms, ours pin.Pin) {
		r.Open()
		after(confirmedFor)
		s.Meanwhile(func() { panic("of a test") })
		began := time.Now()
		if panics.Catch(func() { _ = own.Confirm(t.Context(), "r", ours) }) == nil {
			t.Fatal("nothing broke")
		}
		limited, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if opening, err := own.Opening(limited, "r"); err != nil || !opening.IsZero() || time.Since(began) > 0 {
			t.Errorf("the room is about to open under %v, %v, said after %v", opening, err, time.Since(began))
		}
	})
}
