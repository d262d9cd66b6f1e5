// Package redisstore keeps pins in Redis: every key and every script of placement is
// here. It promises that each write of a pin is atomic, that each call is one round trip
// where its comment says so, that a repeated call (a lost reply) ends the same way, and
// that no call waits longer than its context or the connection's time-outs.
//
// It does not know what a pin means: it compares and sets their texts. It imports
// nothing that stands above it; orchestrator and failover declare the interfaces that it fills.
package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// The client's own time-outs. A join has 300 ms for the store (orchestrator enforces it
// by context), so one lost packet or dead connection must leave room for a second
// attempt. go-redis would wait 5 s and try three times more.
const (
	dialTimeout     = 100 * time.Millisecond
	exchangeTimeout = 140 * time.Millisecond // for the write and for the read
	poolTimeout     = 100 * time.Millisecond // for a connection when all are busy
	maxRetries      = 2                      // every command here may be repeated safely
	minRetryBackoff = 5 * time.Millisecond
	maxRetryBackoff = 20 * time.Millisecond
	once            = 1 // dials per attempt: the retry above is the only one
)

// Store is a client of one Redis (later also Sentinel and Cluster). Its methods
// may be called from any goroutine.
type Store struct {
	client redis.UniversalClient
	log    *slog.Logger
	trips  *tripCounter
	notes  chan note // for the index; see index.go
}

// Open returns a store for a redis:// or rediss:// URL. It does not connect. A distant store may need
// more patience: time-outs that the URL names (?read_timeout=250ms) replace the ones above. The
// text of the URL never appears in an error, since it may hold a password.
func Open(rawURL string, log *slog.Logger) (*Store, error) {
	options, err := redis.ParseURL(rawURL)
	if err != nil {
		if withURL, ok := errors.AsType[*url.Error](err); ok {
			err = withURL.Err
		}
		return nil, fmt.Errorf("redis URL: %w", err)
	}
	// go-redis has one logger per process, unstructured and on standard error. All that it says
	// of ours also comes back as an error, and is logged by whoever decides on it.
	logging.Disable()
	options.Protocol = 2 // Nothing here needs RESP3's pushes.
	options.DisableIdentity = true
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	options.ContextTimeoutEnabled = true
	options.DialTimeout = cmp.Or(options.DialTimeout, dialTimeout)
	options.DialerRetries = once
	options.ReadTimeout = cmp.Or(options.ReadTimeout, exchangeTimeout)
	options.WriteTimeout = cmp.Or(options.WriteTimeout, exchangeTimeout)
	options.PoolTimeout = cmp.Or(options.PoolTimeout, poolTimeout)
	options.MaxRetries = cmp.Or(options.MaxRetries, maxRetries)
	options.MinRetryBackoff = minRetryBackoff
	options.MaxRetryBackoff = maxRetryBackoff
	return newStore(redis.NewClient(options), log), nil
}

// newStore wraps a client of any of the three kinds.
func newStore(client redis.UniversalClient, log *slog.Logger) *Store {
	s := &Store{client: client, log: log, trips: &tripCounter{}, notes: make(chan note, maxNotes)}
	client.AddHook(s.trips)
	return s
}

// Close closes the connections. Run must have ended.
func (s *Store) Close() error { return s.client.Close() }

// Ping reports whether the store answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("ping the store: %w", err)
	}
	return nil
}

// RoundTrips is how many times the store was asked since Open: a pipeline counts
// once, and so does a command that the client had to repeat. The greeting on a new
// connection is not counted.
func (s *Store) RoundTrips() uint64 { return s.trips.count.Load() }

// tripCounter is the go-redis hook behind RoundTrips.
type tripCounter struct{ count atomic.Uint64 }

// DialHook leaves dialing alone.
func (t *tripCounter) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook counts a command.
func (t *tripCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		t.add(cmd)
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook counts a pipeline.
func (t *tripCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if len(cmds) > 0 {
			t.add(cmds[0])
		}
		return next(ctx, cmds)
	}
}

// add counts a trip that begins with first.
func (t *tripCounter) add(first redis.Cmder) {
	if first.Name() != "hello" {
		t.count.Add(1)
	}
}
