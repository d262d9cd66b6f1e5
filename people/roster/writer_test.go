package roster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// chunks is a store whose answer to its n-th pipeline is answer(n), 0 for the first.
type chunks struct {
	answer  func(ctx context.Context, n int) error
	calls   int
	written map[ring.RoomID]bool
}

func (c *chunks) WriteRosters(ctx context.Context, changes []Change) ([]Outcome, error) {
	outcomes, err := make([]Outcome, len(changes)), c.answer(ctx, c.calls)
	c.calls++
	for i, change := range changes {
		if err == nil {
			outcomes[i], c.written[change.Room] = Written, true
		}
	}
	return outcomes, err
}

const crowds = 4

// crowded has as many rooms as pipelines: each room has all the people that one takes.
func crowded(answer func(ctx context.Context, n int) error) (*Writer, *chunks) {
	store := &chunks{answer: answer, written: map[ring.RoomID]bool{}}
	w := NewWriter(panics.New(), slog.New(slog.DiscardHandler))
	w.Store = store
	for i := range crowds {
		b := w.Open(ring.RoomID(fmt.Sprint(i)), pin.Pin{})
		for peer := range maxPeers {
			b.Put(Peer{ID: fmt.Sprint(peer)})
		}
	}
	return w, store
}

var errAway = errors.New("the store is away")

// A pipeline that fails keeps back its own rooms only, and those until the next round.
func TestAFailedPipelineKeepsBackNoOther(t *testing.T) {
	w, store := crowded(func(_ context.Context, n int) error {
		if n == 0 {
			return errAway
		}
		return nil
	})
	if err := w.Flush(t.Context()); !errors.Is(err, errAway) || len(store.written) != crowds-1 {
		t.Errorf("Flush = %v, and %d rooms are written, want %d and an error", err, len(store.written), crowds-1)
	}
	if err := w.Flush(t.Context()); err != nil || len(store.written) != crowds || store.calls != crowds+1 {
		t.Errorf("the next Flush = %v, and %d rooms are written in %d pipelines, want %d in %d", err, len(store.written), store.calls, crowds, crowds+1)
	}
}

// A round whose time is over does not say that only unreachable masters lack something.
func TestARoundThatIsCutShortIsAFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := crowded(func(ctx context.Context, _ int) error { <-ctx.Done(); return pin.ErrUnreachable })
		if err := w.Flush(t.Context()); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, pin.ErrUnreachable) {
			t.Errorf("Flush = %v", err)
		}
	})
}

// A round ends when its time is over, and when each room was tried.
func TestARoundEnds(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(ctx context.Context, n int) error
		calls  int
	}{
		"away":   {func(context.Context, int) error { return errAway }, crowds},
		"silent": {func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			w, store := crowded(c.answer)
			if err := w.Flush(t.Context()); err == nil || store.calls != c.calls || len(store.written) > 0 {
				t.Errorf("%s: Flush = %v after %d pipelines, want an error after %d", name, err, store.calls, c.calls)
			}
			store.answer = func(context.Context, int) error { return nil }
			if err := w.Flush(t.Context()); err != nil || len(store.written) != crowds {
				t.Errorf("%s: the next Flush = %v, and %d rooms are written", name, err, len(store.written))
			}
		})
	}
}

// A failed write to an unreachable master hides no other fault.
func TestTheGraverFaultIsTold(t *testing.T) {
	unreachable := fmt.Errorf("a master is silent: %w", pin.ErrUnreachable)
	for at := range crowds + 1 { // of the other fault; crowds: there is none
		w, _ := crowded(func(_ context.Context, n int) error {
			if n == at {
				return errAway
			}
			return unreachable
		})
		if err := w.Flush(t.Context()); errors.Is(err, pin.ErrUnreachable) != (at == crowds) || errors.Is(err, errAway) != (at < crowds) {
			t.Errorf("with another fault in pipeline %d: Flush = %v", at, err)
		}
	}
}
