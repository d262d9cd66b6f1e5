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
	checked bool // only watch clears down
	down    atomic.Bool
	sockets atomic.Int64 // the node's answer, and those sent there since
}

func newBackend(address string, checked bool) *backend {
	return &backend{address: address, checked: checked}
}

func (b *backend) ready() bool { return !b.down.Load() }

// A frozen process accepts, so with checks a dial does not prove readiness.
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
	look := func() {
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
	look()
	backoff.Every(ctx, every, look)
}
