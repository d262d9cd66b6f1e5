// Package redisstore keeps pins in Redis: every key and every script of placement is here. It promises that each
// write of a pin is atomic, that each call is one round trip where its comment says so, that a repeated call
// (a lost reply) ends the same way, and that no call waits longer than its context or the connection's time-outs.
//
// It does not know what a pin means: it compares and sets their texts. orchestrator and failover declare the
// interfaces that it implements.
package redisstore

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-rtc/holdfast/pin"
)

// The client's own time-outs. They bound only callers that have more time than a join, whose context ends after 300 ms.
const (
	dialTimeout     = time.Second
	exchangeTimeout = 2 * time.Second        // for the write and for the read
	poolTimeout     = 100 * time.Millisecond // for a connection when all are busy
	maxRetries      = 2                      // every command here may be repeated safely
	minRetryBackoff = 5 * time.Millisecond
	maxRetryBackoff = 20 * time.Millisecond
)

// Store is a client of one Redis, of a Sentinel set or of a Redis Cluster. Its methods
// may be called from any goroutine.
type Store struct {
	keys    keyspace
	client  redis.UniversalClient
	cluster *redis.ClusterClient // client, for a Redis Cluster
	sole    *master              // nil for a Redis Cluster
	masters masters
	log     *slog.Logger
	trips   *tripCounter
	doubts  chan struct{} // Run should look at the incarnations
}

// Open is OpenAs for a cluster that nobody named.
func Open(rawURL string, log *slog.Logger) (*Store, error) {
	return OpenAs(rawURL, pin.DefaultCluster, log)
}

// OpenAs returns a store for a URL (address.go has the forms) and the keys of the named cluster. It does not connect.
// Its errors do not show the URL, which may hold a password.
func OpenAs(rawURL, cluster string, log *slog.Logger) (*Store, error) {
	if err := pin.ValidCluster(cluster); err != nil {
		return nil, err
	}
	at, err := parseAddress(rawURL)
	if err != nil {
		return nil, fmt.Errorf("redis URL: %w", err)
	}
	// go-redis logs to standard error. All that it says also comes back as an error.
	logging.Disable()
	s := &Store{
		keys: keyspace(cluster), log: log, trips: &tripCounter{}, doubts: make(chan struct{}, 1),
		masters: masters{byAddress: make(map[string]*master)},
	}
	if at.kind == kindCluster {
		s.cluster = redis.NewClusterClient(at.cluster(func(member *redis.Options) *redis.Client {
			return s.addMaster(member, func() *redis.Client { return redis.NewClient(member) }).client
		}))
		s.client = s.cluster
		return s, nil
	}
	s.sole = s.addMaster(at.options, func() *redis.Client {
		if at.kind == kindSentinel {
			return redis.NewFailoverClient(at.failover())
		}
		return redis.NewClient(at.options)
	})
	key := cluster + markerName
	s.sole.marker.Store(&key)
	s.client = s.sole.client
	return s, nil
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

// RoundTrips is how many times the store was asked since Open. A pipeline counts once, and so does a command that the
// client repeated. The greeting on a new connection does not count.
func (s *Store) RoundTrips() uint64 { return s.trips.count.Load() }

// tripCounter is the go-redis hook behind RoundTrips.
type tripCounter struct{ count atomic.Uint64 }

func (t *tripCounter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (t *tripCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		t.add(cmd)
		return next(ctx, cmd)
	}
}

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
	switch first.Name() {
	case "hello", "info", "cluster", "readonly": // greetings
	default:
		t.count.Add(1)
	}
}
