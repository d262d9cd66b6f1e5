// Package backoff waits: a sleep and a rhythm that a context ends, pauses that double, and jitter that keeps processes out
// of step. It knows nothing of what is tried again.
package backoff

import (
	"context"
	"math/rand/v2"
	"time"
)

// Backoff gives pauses that double from First to Most. It may be used by one goroutine.
type Backoff struct {
	First, Most time.Duration

	last time.Duration
}

// Next returns the next pause.
func (b *Backoff) Next() time.Duration {
	b.last = min(max(b.First, 2*b.last), b.Most)
	return b.last
}

// Reset begins with First again.
func (b *Backoff) Reset() { b.last = 0 }

// Jitter returns the pause changed at random by up to a quarter.
func Jitter(pause time.Duration) time.Duration {
	return time.Duration(float64(pause) * (0.75 + 0.5*rand.Float64())) //nolint:gosec // spreads load, protects nothing
}

// Sleep waits for the pause. It returns false if ctx ended.
func Sleep(ctx context.Context, pause time.Duration) bool {
	if pause <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Every calls f after each pause until ctx ends.
func Every(ctx context.Context, pause time.Duration, f func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f()
		}
	}
}
