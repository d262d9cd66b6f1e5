package balancer

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/readiness"
)

type backend struct {
	address string
	// With checked, only watch marks the backend as ready again.
	checked bool
	down    atomic.Bool
	// sockets is the node's last answer, plus the connections sent there since.
	sockets atomic.Int64
}

func newBackend(address string, checked bool) *backend {
	return &backend{address: address, checked: checked}
}

func (b *backend) ready() bool { return !b.down.Load() }

// dial connects to the backend. With checks a successful dial does not mark the backend as ready, because a frozen
// process's kernel accepts connections, too.
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

func (b *backend) watch(ctx context.Context, every time.Duration, log *slog.Logger) {
	asker := readiness.New(every)
	check := func() {
		sockets, err := asker.Count(ctx, b.address, readiness.Path)
		if ctx.Err() != nil {
			return
		}
		if sockets >= 0 {
			b.sockets.Store(sockets)
		}
		if was := b.down.Swap(err != nil); was != (err != nil) {
			log.Info("backend changed", "backend", b.address, "ready", err == nil, "error", err)
		}
	}
	check()
	backoff.Every(ctx, every, check)
}
