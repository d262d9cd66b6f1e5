package front

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/readiness"
)

// backend is one signaling node.
type backend struct {
	address string
	checked bool        // watch runs, and alone says that the backend is well again
	down    atomic.Bool // it refused, did not answer in time, or said it is not ready
}

func newBackend(address string, checked bool) *backend {
	return &backend{address: address, checked: checked}
}

// ready reports what was last known; a backend is ready until it proves otherwise.
func (b *backend) ready() bool { return !b.down.Load() }

// dial connects, within limit. A backend that cannot be reached is passed over
// until a check succeeds, or, without checks, a dial. (The kernel of a frozen
// process accepts, so a dial alone proves little.)
func (b *backend) dial(ctx context.Context, limit time.Duration) (net.Conn, error) {
	dialer := net.Dialer{Timeout: limit}
	conn, err := dialer.DialContext(ctx, "tcp", b.address)
	if err != nil {
		b.down.Store(true)
		return nil, fmt.Errorf("dial backend %s: %w", b.address, err)
	}
	if !b.checked {
		b.down.Store(false)
	}
	return conn, nil
}

// watch asks the backend whether it is ready, until ctx ends. An answer that
// takes as long as the interval is no answer.
func (b *backend) watch(ctx context.Context, every time.Duration, path string, log *slog.Logger) {
	asker := readiness.New(every)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := asker.Ask(ctx, b.address, path)
		if ctx.Err() != nil {
			return
		}
		if was := b.down.Swap(err != nil); was != (err != nil) {
			log.Info("backend changed", "backend", b.address, "ready", err == nil, "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
