package presence

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/panics"
)

// hanging never answers a heartbeat, as a cluster of which one master is silent.
type hanging struct {
	*memory
	swept atomic.Int32
}

func (h *hanging) Renew(ctx context.Context, _ []Lease) ([]Lease, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (h *hanging) Sweep(ctx context.Context) error {
	if ctx.Err() == nil {
		h.swept.Add(1)
	}
	return ctx.Err()
}

func TestTheDeadAreSweptWhileHeartbeatsHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hanging{memory: newMemory()}
		tracker := New(DefaultTiming(), h, h, panics.New(), slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- tracker.Run(ctx) }()
		time.Sleep(10 * time.Second) //nolint:forbidigo // the bubble's clock
		synctest.Wait()
		h.swept.Store(0)
		time.Sleep(5 * time.Minute) //nolint:forbidigo // the bubble's clock
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if swept := h.swept.Load(); swept < 10 {
			t.Errorf("%d sweeps in five minutes", swept)
		}
	})
}
