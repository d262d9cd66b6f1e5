// Package redisstore keeps pins in Redis: every key and every script of placement is
// here. It promises that each write of a pin is atomic, that each call is one round trip
// where its comment says so, that a repeated call (a lost reply) ends the same way, and
// that no call waits longer than its context or the connection's time-outs.
//
// It does not know what a pin means: it compares and sets their texts. It imports
// nothing that stands above it; orchestrator and failover declare the interfaces that it fills.
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

// The client's own time-outs. A join has 300 ms for the store (orchestrator enforces it by context), and all of that may be the way
// of one question and its answer: these bound only callers that have more time. go-redis would wait 5 s and try three times more.
const (
	dialTimeout     = time.Second
	exchangeTimeout = 2 * time.Second        // for the write and for the read
	poolTimeout     = 100 * time.Millisecond // for a connection when all are busy
	maxRetries      = 2                      // every command here may be repeated safely
	minRetryBackoff = 5 * time.Millisecond
	maxRetryBackoff = 20 * time.Millisecond
	once            = 1 // dials per attempt: the retry above is the only one
)

// Store is a client of one Redis, of a Sentinel set or of a Redis Cluster. Its methods
// may be called from any goroutine.
type Store struct {
	keys    keyspace
	client  redis.UniversalClient
	cluster *redis.ClusterClient // client, when it is one
	sole    *master              // else nil
	masters masters
	log     *slog.Logger
	trips   *tripCounter
	doubts  chan struct{} // one look at the generations wanted; more than one is the same
}

// Open is OpenAs for a cluster that nobody named.
func Open(rawURL string, log *slog.Logger) (*Store, error) {
	return OpenAs(rawURL, pin.DefaultCluster, log)
}

// OpenAs returns a store for a URL and the keys of the named cluster; address.go has the forms. It does not connect. The text of the
// URL never appears in an error, since it may hold a password.
func OpenAs(rawURL, cluster string, log *slog.Logger) (*Store, error) {
	if err := pin.ValidCluster(cluster); err != nil {
		return nil, err
	}
	at, err := parseAddress(rawURL)
	if err != nil {
		return nil, fmt.Errorf("redis URL: %w", err)
	}
	// go-redis has one logger per process, unstructured and on standard error. All that it says
	// of ours also comes back as an error, and is logged by whoever decides on it.
	logging.Disable()
	s := &Store{
		keys: keyspace(cluster), log: log, trips: &tripCounter{}, doubts: make(chan struct{}, 1),
		masters: masters{byAddress: make(map[string]*master)},
	}
	if at.kind == kindCluster {
		s.cluster = redis.NewClusterClient(at.cluster(s.newMember))
		s.client = s.cluster
		return s, nil
	}
	s.sole = &master{keys: s.keys, log: log}
	key := cluster + markerName
	s.sole.marker.Store(&key)
	at.options.OnConnect = s.sole.greet
	if at.kind == kindSentinel {
		s.sole.client = redis.NewFailoverClient(at.failover())
	} else {
		s.sole.client = redis.NewClient(at.options)
	}
	s.sole.client.AddHook(s.trips)
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
	switch first.Name() {
	case "hello", "info", "cluster", "readonly": // greetings
	default:
		t.count.Add(1)
	}
}
