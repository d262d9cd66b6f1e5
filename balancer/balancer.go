// Package balancer is the small TCP balancer of development and compose clusters: it
// spreads connections over the signaling nodes, so that any of them may die.
//
// It promises that a connection reaches a node that answers as long as there is
// one, and that bytes and half-closes pass both ways unchanged. It does not know
// what the bytes are, except for asking each node over HTTP whether it is ready.
// In production any load balancer takes its place; no stickiness is needed.
package balancer

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/backoff"
)

// Config of a balancer.
type Config struct {
	Backends       []string      // host:port of signaling nodes
	MaxConnections int           // one more is closed
	DialTimeout    time.Duration // for each backend
	CheckEvery     time.Duration // 0 for never
}

// DefaultConfig names no backend.
func DefaultConfig() Config {
	return Config{
		// Each costs two sockets: a development machine's file limit ends first.
		MaxConnections: 4096,
		DialTimeout:    500 * time.Millisecond,
		// The kernel of a frozen process still accepts.
		CheckEvery: 500 * time.Millisecond,
	}
}

// Validate lists every fault.
func (c Config) Validate() error {
	var faults []error
	if len(c.Backends) == 0 {
		faults = append(faults, errors.New("no backends: name at least one signaling node as host:port"))
	}
	for _, backend := range c.Backends {
		if _, _, err := net.SplitHostPort(backend); err != nil {
			faults = append(faults, fmt.Errorf("backend %q is not host:port", backend))
		}
	}
	if c.MaxConnections < 1 {
		faults = append(faults, fmt.Errorf("the limit of connections is %d, want at least 1", c.MaxConnections))
	}
	if c.DialTimeout <= 0 {
		faults = append(faults, fmt.Errorf("the dial time-out is %s, want more than nothing", c.DialTimeout))
	}
	return errors.Join(faults...)
}

// Balancer splices each connection to a backend.
type Balancer struct {
	cfg      Config
	log      *slog.Logger
	backends []*backend
	next     atomic.Uint64
}

// New needs a valid configuration.
func New(cfg Config, log *slog.Logger) *Balancer {
	b := &Balancer{cfg: cfg, log: log}
	for _, address := range cfg.Backends {
		b.backends = append(b.backends, newBackend(address, cfg.CheckEvery > 0))
	}
	return b
}

// Serve accepts until ctx ends, and returns when all connections have ended.
func (b *Balancer) Serve(ctx context.Context, l net.Listener) error {
	var running sync.WaitGroup
	defer running.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	if b.cfg.CheckEvery > 0 {
		for _, backend := range b.backends {
			running.Go(func() { backend.watch(ctx, b.cfg.CheckEvery, b.log) })
		}
	}
	slots := make(chan struct{}, b.cfg.MaxConnections)
	for {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return fmt.Errorf("accept: %w", err)
		case err != nil:
			// Out of descriptors, or a connection that broke in the queue: both pass.
			b.log.Warn("accept", "error", err)
			backoff.Sleep(ctx, acceptPause)
			continue
		}
		select {
		case slots <- struct{}{}:
			running.Go(func() { b.carry(ctx, conn); <-slots })
		default:
			b.log.Warn("too many connections: one was closed", "limit", b.cfg.MaxConnections)
			conn.Close()
		}
	}
}

// Else a listener without descriptors would spin.
const acceptPause = 50 * time.Millisecond

func (b *Balancer) carry(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := b.dial(ctx)
	if err != nil {
		if ctx.Err() == nil {
			b.log.Warn("no backend answers", "error", err)
		}
		return
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { client.Close(); server.Close() })()
	splice(client, server)
}

// dial tries backends that are not ready last: they explain themselves better than silence does.
func (b *Balancer) dial(ctx context.Context) (net.Conn, error) {
	first := b.next.Add(1) - 1
	var faults []error
	for _, ready := range []bool{true, false} {
		for i := range uint64(len(b.backends)) {
			backend := b.backends[(first+i)%uint64(len(b.backends))]
			if backend.ready() != ready {
				continue
			}
			conn, err := backend.dial(ctx, b.cfg.DialTimeout)
			if err == nil {
				return conn, nil
			}
			faults = append(faults, err)
		}
	}
	return nil, errors.Join(faults...)
}
