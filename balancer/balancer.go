// Package balancer is the small TCP balancer of development and compose clusters: it
// spreads connections over the signaling nodes, so that any of them may die.
//
// It promises that a connection reaches a node that answers as long as there is
// one, every second one that with the fewest sockets, and that bytes and half-closes
// pass both ways unchanged. It does not know what the bytes are, except for asking each
// node over HTTP whether it is ready and how many sockets it has.
// In production any load balancer takes its place; no stickiness is needed.
package balancer

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/loglimit"
)

// Config of a balancer.
type Config struct {
	Backends       []string      // host:port
	MaxConnections int           // a quarter of them of one address
	DialTimeout    time.Duration // each backend's
	CheckEvery     time.Duration // 0: never
	ProxyProtocol  bool          // version 2
	TLS            *tls.Config   // ends here; nil: passes through
}

// DefaultConfig names no backend.
func DefaultConfig() Config {
	return Config{
		MaxConnections: 4096,
		DialTimeout:    500 * time.Millisecond,
		CheckEvery:     500 * time.Millisecond,
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

// Balancer splices connections to backends.
type Balancer struct {
	cfg      Config
	log      *slog.Logger
	backends []*backend
	next     atomic.Uint64
	refusals *loglimit.Limiter
	failures *loglimit.Limiter // of backends
}

// Strangers cause them.
const failureLogsPerSecond, failureLogBurst = 1, 10

// New needs a valid configuration.
func New(cfg Config, log *slog.Logger) *Balancer {
	b := &Balancer{cfg: cfg, log: log, refusals: loglimit.New(failureLogsPerSecond, failureLogBurst), failures: loglimit.New(failureLogsPerSecond, failureLogBurst)}
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
	free := newPlaces(b.cfg.MaxConnections)
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
			// Out of descriptors, or a broken connection: both pass.
			b.log.Warn("accept", "error", err)
			backoff.Sleep(ctx, acceptPause)
			continue
		}
		leave, ok := free.take(conn.RemoteAddr())
		if !ok {
			b.refuse(conn)
			continue
		}
		running.Go(func() {
			defer leave()
			b.carry(ctx, conn)
		})
	}
}

const acceptPause = 50 * time.Millisecond

func (b *Balancer) refuse(conn net.Conn) {
	if unlogged, ok := b.refusals.Next(); ok {
		b.log.Warn("too many connections: one was closed", "remote", conn.RemoteAddr().String(), "limit", b.cfg.MaxConnections,
			"limit_of_an_address", ofOneAddress(b.cfg.MaxConnections), "unlogged", unlogged)
	}
	conn.Close()
}

func (b *Balancer) fail(what string, why ...any) {
	if unlogged, ok := b.failures.Next(); ok {
		b.log.Warn(what, append(why, "unlogged", unlogged)...)
	}
}

const handshakeLimit = 5 * time.Second

func (b *Balancer) carry(ctx context.Context, client net.Conn) {
	defer client.Close()
	if b.cfg.TLS != nil {
		var err error
		if client, err = secured(ctx, client, b.cfg.TLS); err != nil {
			b.log.Debug("TLS with a client", "error", err)
			return
		}
	}
	server, end, err := b.dial(ctx)
	if err != nil {
		if ctx.Err() == nil {
			b.fail("no backend answers", "error", err)
		}
		return
	}
	defer end()
	defer server.Close()
	defer context.AfterFunc(ctx, func() { client.Close(); server.Close() })()
	if b.cfg.ProxyProtocol {
		_ = server.SetWriteDeadline(time.Now().Add(b.cfg.DialTimeout))
		if _, err := proxyproto.HeaderProxyFromAddrs(2, client.RemoteAddr(), client.LocalAddr()).WriteTo(server); err != nil {
			b.fail("a backend takes nothing", "backend", server.RemoteAddr().String(), "error", err)
			return
		}
		_ = server.SetWriteDeadline(time.Time{})
	}
	splice(client, server)
}

// Signaling nodes understand HTTP/2 without TLS.
func secured(ctx context.Context, client net.Conn, config *tls.Config) (net.Conn, error) {
	config = config.Clone()
	config.NextProtos = []string{"h2", "http/1.1"}
	limited, cancel := context.WithTimeout(ctx, handshakeLimit)
	defer cancel()
	conn := tls.Server(client, config)
	if err := conn.HandshakeContext(limited); err != nil {
		return nil, fmt.Errorf("shake hands: %w", err)
	}
	return conn, nil
}

// end is called after the connection.
func (b *Balancer) dial(ctx context.Context) (conn net.Conn, end func(), err error) {
	var faults []error
	for _, backend := range b.order() {
		backend.sockets.Add(1) // before others choose
		conn, err := backend.dial(ctx, b.cfg.DialTimeout)
		if err == nil {
			return conn, func() { backend.sockets.Add(-1) }, nil
		}
		backend.sockets.Add(-1)
		faults = append(faults, err)
	}
	return nil, nil, errors.Join(faults...)
}

// order puts ready ones first: for every second connection those with the fewest sockets, else in turn, since a node
// that refuses clients always has the fewest.
func (b *Balancer) order() []*backend {
	type rank struct {
		*backend

		down    bool
		sockets int64
	}
	turn := b.next.Add(1) - 1
	first, count := int(turn/2%uint64(len(b.backends))), turn%2 == 0
	ranks := make([]rank, 0, len(b.backends))
	for _, one := range slices.Concat(b.backends[first:], b.backends[:first]) {
		ranks = append(ranks, rank{one, !one.ready(), one.sockets.Load()})
	}
	slices.SortStableFunc(ranks, func(x, y rank) int {
		if x.down != y.down {
			return boolOrder(x.down)
		}
		if !count {
			return 0
		}
		return cmp.Compare(x.sockets, y.sockets)
	})
	order := make([]*backend, len(ranks))
	for i, r := range ranks {
		order[i] = r.backend
	}
	return order
}

func boolOrder(last bool) int {
	if last {
		return 1
	}
	return -1
}
