package failover

import (
	"context"
	"math/rand/v2"
	"time"
)

type backoff struct {
	first, most time.Duration
	last        time.Duration
}

func (b *backoff) next() time.Duration {
	b.last = min(max(b.first, 2*b.last), b.most)
	return b.last
}

func (b *backoff) reset() { b.last = 0 }

// jitter keeps signaling nodes out of step.
func jitter(pause time.Duration) time.Duration {
	return time.Duration(float64(pause) * (0.75 + 0.5*rand.Float64())) //nolint:gosec // spreads load, protects nothing
}

func sleep(ctx context.Context, pause time.Duration) bool {
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
