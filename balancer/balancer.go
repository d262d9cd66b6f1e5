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

// Config is what a Balancer is told by its process.
type Config struct {
	Backends []string // host:port
	// MaxConnections bounds all connections. One address may have a quarter of them.
	MaxConnections int
	// DialTimeout is for each backend.
	DialTimeout time.Duration
	// CheckEvery is the time between two questions to a backend. 0 means that none are asked.
	CheckEvery time.Duration
	// ProxyProtocol sends a header of the PROXY protocol, version 2.
	ProxyProtocol bool
	// TLS ends the clients' TLS here. With nil, the bytes pass through as they are.
	TLS *tls.Config
}

// DefaultConfig has the values of the binary. It names no backend.
func DefaultConfig() Config {
	return Config{
		MaxConnections: 4096,
		DialTimeout:    500 * time.Millisecond,
		CheckEvery:     500 * time.Millisecond,
	}
}

// Validate returns every fault of the configuration.
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

// Balancer passes connections on to its backends.
type Balancer struct {
	cfg      Config
	log      *slog.Logger
	backends []*backend
	next     atomic.Uint64
	refusals *loglimit.Limiter
	// failures limits the log lines about backends.
	failures *loglimit.Limiter
}

// Strangers cause these log lines, so their rate is limited.
const failureLogsPerSecond, failureLogBurst = 1, 10

// New starts nothing. It needs a valid configuration.
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
			// The process is out of file descriptors, or the connection broke at once. Either passes.
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

// carry passes one client's connection on to a backend, until it ends.
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

// secured ends the client's TLS. It offers HTTP/2, which signaling nodes understand without TLS.
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

// dial connects to the first backend of the order that answers. The caller calls end when the connection is over.
func (b *Balancer) dial(ctx context.Context) (conn net.Conn, end func(), err error) {
	var faults []error
	for _, backend := range b.order() {
		// The connection is counted before the dial, so that others that choose meanwhile see it.
		backend.sockets.Add(1)
		conn, err := backend.dial(ctx, b.cfg.DialTimeout)
		if err == nil {
			return conn, func() { backend.sockets.Add(-1) }, nil
		}
		backend.sockets.Add(-1)
		faults = append(faults, err)
	}
	return nil, nil, errors.Join(faults...)
}

// order returns the backends in the order in which they are tried, the ready ones first. For every second connection
// the one with the fewest sockets leads, and for the others each leads in rotation: a node that refuses its clients
// always has the fewest sockets and would get all of them.
func (b *Balancer) order() []*backend {
	type rank struct {
		*backend

		down    bool
		sockets int64
	}
	round := b.next.Add(1) - 1
	first, count := int(round/2%uint64(len(b.backends))), round%2 == 0
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
