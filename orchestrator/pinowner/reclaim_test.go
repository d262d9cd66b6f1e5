package pinowner

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
)

// Somebody brings a pin from before a data loss, while the room is open here and a third node has claimed it: the
// owner reclaims the room, and its people stay.
func TestNewcomerDoesNotMoveAnOpenRoom(t *testing.T) {
	fresh := pin.Fence{Epoch: 9000, Nonce: pin.NewFreshNonce()}
	for name, c := range map[string]struct {
		stands pin.Pin
		keeps  bool
	}{
		"claimed by who could not know": {stands: pinAt("b", 1, fresh.Epoch, fresh.Nonce), keeps: true},
		"moved by somebody who knew":    {stands: pinAt("b", 1, 9000, 9)},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Majority = func() bool { return true }
			withOwner(t, cfg, func(t *testing.T, own *Owner, s *testkit.MemoryStore, r *testkit.Rooms, ours pin.Pin) {
				s.Put("r", c.stands.Encode())
				brought := pinAt("a", 1, 8000, 3)
				err := own.Confirm(t.Context(), "r", brought)
				stands, _ := pin.Parse(s.Stands("r"))
				var fenced *pin.FencedError
				if !errors.As(err, &fenced) || fenced.Current != stands || c.keeps != (stands.Boot == ours.Boot) || !openingOf(t, own, "r").IsZero() {
					t.Errorf("Confirm = %v, and %v stands", err, stands)
				}
				if told := r.Fenced(); len(told) != 1 || told[0].Pin != stands {
					t.Errorf("the holder was told %v, want %v", told, stands)
				}
			})
		})
	}
}

// The same, and the store loses data again during the reclaim. The owner's pin is then lower than the one that was
// brought, so nobody is told that it fences.
func TestNewcomerIsNotFencedByALowerPin(t *testing.T) {
	withOwner(t, DefaultConfig(), func(t *testing.T, own *Owner, s *testkit.MemoryStore, _ *testkit.Rooms, ours pin.Pin) {
		s.Put("r", pinAt("b", 1, 9000, pin.NewFreshNonce()).Encode())
		before := s.Calls()
		s.Meanwhile(func() {
			if s.Calls() == before+2 { // The pin was read, and this is the write over it.
				s.Put("r", ours.Encode())
			}
		})
		if err := own.Confirm(t.Context(), "r", pinAt("a", 1, 8000, 3)); !errors.Is(err, pin.ErrMissing) || errors.Is(err, pin.ErrFenced) {
			t.Errorf("Confirm = %v while %q stands, want that the pin is missing", err, s.Stands("r"))
		}
	})
}

// After a data loss each owner refreshes every second, so that fenced owners stop soon.
func TestOwnerLooksOftenAfterALoss(t *testing.T) {
	withOwner(t, DefaultConfig(), func(t *testing.T, _ *Owner, s *testkit.MemoryStore, r *testkit.Rooms, _ pin.Pin) {
		s.Lose()
		after(checkEvery + time.Millisecond) // It has noticed, and has its pin back.
		higher := pinAt("b", 1, 5001, 1)
		s.Put("r", higher.Encode())
		after(checkEvery + time.Millisecond)
		if told := r.Fenced(); len(told) != 1 || told[0].Pin != higher {
			t.Errorf("%v after it was fenced the holder was told %v", checkEvery, told)
		}
	})
}

func TestOwnerReclaimsFromAPinWhoseMakerDidNotKnowIt(t *testing.T) {
	fresh := pin.Fence{Epoch: 9000, Nonce: pin.NewFreshNonce()}
	intruder := pinAt("b", 1, fresh.Epoch, fresh.Nonce)
	mover := pinAt("b", 1, 9000, 9)
	for name, c := range map[string]struct {
		found    pin.Pin
		prepare  func(own *Owner)
		majority bool
		keeps    bool
	}{
		"fresh":                      {found: intruder, majority: true, keeps: true},
		"moved by somebody who knew": {found: mover, majority: true},
		"moved by somebody else from what ours was moved from": {found: pinAt("b", 1, 5000, 9), majority: true, keeps: true},
		"in a minority": {found: intruder},
		"after a pause": {found: intruder, majority: true, prepare: func(own *Owner) {
			own.mu.Lock()
			defer own.mu.Unlock()
			clear(own.confirmed)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Majority = func() bool { return c.majority }
			withOwner(t, cfg, func(t *testing.T, own *Owner, s *testkit.MemoryStore, r *testkit.Rooms, ours pin.Pin) {
				if c.prepare != nil {
					c.prepare(own)
				}
				s.Put("r", c.found.Encode())
				after(6 * time.Second)
				stands, err := pin.Parse(s.Stands("r"))
				if err != nil {
					t.Fatal(err)
				}
				told := r.Fenced()
				if len(told) != 1 || told[0].Pin != stands {
					t.Fatalf("the holder was told %v, the store has %v", told, stands)
				}
				if c.keeps != (stands.Boot == ours.Boot) || c.keeps && stands.Fence.Epoch != c.found.Fence.Epoch+1 || !c.keeps && stands != c.found {
					t.Errorf("%v stands", stands)
				}
			})
		})
	}
}

// An owner reports an incarnation when all its pins stand in it, and not before.
func TestOwnerReportsWhatItHasSynced(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Majority = func() bool { return true }
	withOwner(t, cfg, func(t *testing.T, own *Owner, s *testkit.MemoryStore, _ *testkit.Rooms, ours pin.Pin) {
		s.Lose() // incarnation 2
		after(6 * time.Second)
		if !own.Synced().Has(2) || s.Stands("r") != ours.Encode() {
			t.Fatalf("synced in %v, the store has %q", own.Synced().All(), s.Stands("r"))
		}
		s.Lose()
		s.Meanwhile(s.Lose) // It forgets again between the question and the answer.
		after(6 * time.Second)
		if s.Meanwhile(nil); own.Synced().Has(s.Incarnation()) {
			t.Errorf("incarnation %d was reported, which began after the pins were written", s.Incarnation())
		}
		after(6 * time.Second)
		if !own.Synced().Has(s.Incarnation()) {
			t.Errorf("synced in %v, want %d", own.Synced().All(), s.Incarnation())
		}
		// A room that is about to open counts, though it is not held yet.
		opening := pinAt("a", 1, 6000, 1)
		s.Put("s", opening.Encode())
		if err := own.Confirm(t.Context(), "s", opening); err != nil {
			t.Fatal(err)
		}
		s.Lose()
		after(6 * time.Second)
		if s.Stands("s") != opening.Encode() || !own.Synced().Has(s.Incarnation()) {
			t.Errorf("the store has %q for a room that is opening, synced in %v", s.Stands("s"), own.Synced().All())
		}
		// A pin that was confirmed without the store may be missing in it.
		s.Fail(errors.New("the store is away"))
		after(silentFor)
		if err := own.Confirm(t.Context(), "u", pinAt("a", 1, 7000, 1)); err != nil || own.Synced() != "" {
			t.Errorf("Confirm = %v by the majority, and %v is still reported", err, own.Synced().All())
		}
	})
}
