package failover

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff doubles a pause from first to most.
type backoff struct {
	first, most time.Duration
	last        time.Duration
}

// next returns the next pause.
func (b *backoff) next() time.Duration {
	b.last = min(max(b.first, 2*b.last), b.most)
	return b.last
}

// reset begins anew.
func (b *backoff) reset() { b.last = 0 }

// jitter spreads a pause by a quarter either way, so that the edges of a cluster, which all
// see a death at the same instant, do not stay in step.
func jitter(pause time.Duration) time.Duration {
	return time.Duration(float64(pause) * (0.75 + 0.5*rand.Float64())) //nolint:gosec // spreads load, protects nothing
}

// sleep waits for pause and reports false when ctx ended first.
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
