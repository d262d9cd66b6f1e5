package pinowner

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// openingOf asks while nobody else does.
func openingOf(t *testing.T, own *Owner, room ring.RoomID) pin.Pin {
	t.Helper()
	p, err := own.Opening(t.Context(), room)
	if err != nil {
		t.Errorf("Opening = %v", err)
	}
	return p
}

// A room whose pin was not confirmed is not about to open, or it would be handed to a node that lets nobody in. A
// failure takes no earlier grant back.
func TestOnlyWhatWasGrantedIsAboutToOpen(t *testing.T) {
	withOwner(t, DefaultConfig(), func(t *testing.T, own *Owner, s *testkit.MemoryStore, _ *testkit.Rooms, _ pin.Pin) {
		const room ring.RoomID = "new"
		p, away := pinAt("a", 1, 6000, 1), errors.New("the store is away")
		s.Put(room, p.Encode())
		for _, question := range []struct {
			answer error
			opens  pin.Pin
		}{{away, pin.Pin{}}, {nil, p}, {away, p}} {
			s.Fail(question.answer)
			if err := own.Confirm(t.Context(), room, p); (err == nil) != (question.answer == nil) || err != nil && !errors.Is(err, pin.ErrUnconfirmed) {
				t.Fatalf("Confirm = %v while the store says %v", err, question.answer)
			}
			if got := openingOf(t, own, room); got != question.opens {
				t.Errorf("about to open under %v after the store said %v, want %v", got, question.answer, question.opens)
			}
		}
		after(confirmedFor)
		if got := openingOf(t, own, room); !got.IsZero() {
			t.Errorf("about to open under %v, %v after it got leave", got, confirmedFor)
		}
	})
}

// Opening waits for a question under way, which may have read the store before the asker wrote to it.
func TestQuestionUnderWayIsWaitedFor(t *testing.T) {
	withOwner(t, DefaultConfig(), func(t *testing.T, own *Owner, s *testkit.MemoryStore, _ *testkit.Rooms, _ pin.Pin) {
		const room ring.RoomID = "new"
		p, slow := pinAt("a", 1, 6000, 1), confirmTimeout/3
		s.Put(room, p.Encode())
		s.Slow(slow)
		answered := make(chan error, 1)
		go func() { answered <- own.Confirm(t.Context(), room, p) }()
		synctest.Wait()
		impatient, cancel := context.WithTimeout(t.Context(), slow/2)
		defer cancel()
		if _, err := own.Opening(impatient, room); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Opening = %v before the store has answered, want that it waits", err)
		}
		began := time.Now()
		if got := openingOf(t, own, room); got != p || time.Since(began) > slow {
			t.Errorf("about to open under %v after %v, want %v as soon as the store answers", got, time.Since(began), p)
		}
		if err := <-answered; err != nil {
			t.Errorf("Confirm = %v", err)
		}
	})
}
