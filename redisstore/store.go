// Package redisstore keeps pins in Redis: every key and every script of placement is here. It promises that each
// write of a pin is atomic, that each call is one round trip where its comment says so, that a repeated call
// (a lost reply) ends the same way, and that no call waits longer than its context or the connection's time-outs.
//
// It does not know what a pin means: it compares and sets their texts. orchestrator and failover declare the
// interfaces that it implements.
//
// Store's methods stand in one file for each thing that is stored (claims, swaps, rosters, waiting lines, presence, events), because each has
// keys and scripts of its own. Begin with this file, claim.go and swap.go.
//
// A URL names the store; rediss means TLS, whose parameters are in secure.go. User and password are of the data
// servers. Time-outs in the URL (?read_timeout=250ms) replace this package's.
//
//	redis://[user:password@]host:port[/db]
//	redis+sentinel://[user:password@]host:port,host:port/master[?db=n][&sentinel_username=u&sentinel_password=p]
//	redis+cluster://[user:password@]host:port,host:port
//
// Keys begin with the cluster's name, because several may share a store. The braces are Redis Cluster's hash tag: all
// keys of a room lie in one slot.
//
//	<cluster>:room:{<room>}:node             the room's pin, pin.Pin.Encode
//	<cluster>:room:{<room>}:note:<name>      a note of the room: see notes.go
//	<cluster>:room:{<room>}:roster, :left    who is there, who left: see roster.go
//	<cluster>:room:{<room>}:admitted         whom the waiting list let in, until the roster has them
//	<cluster>:room:{<room>}:door, and so on  the waiting list: see people/waitlist/DESIGN.md
//	<cluster>:room:{<room>}:history          its latest moves: see history.go
//	<cluster>:boot:{<role>/<node>}           when its latest boot began: see boot.go
//	<cluster>:generation                     the marker: see master.go
//	<cluster>:{events}                       what happened, and markers of facts for an hour: see events.go
//	<cluster>:room:{<room>}:told, :facts     what receivers of webhooks know of the room, and what waits: see webhooks.go
//	<cluster>:{webhooks}:<name>              whether they are wanted, their sender, the rooms to look at: see webhooks.go
package redisstore

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	dialTimeout     = time.Second
	exchangeTimeout = 2 * time.Second
	poolTimeout     = 100 * time.Millisecond
	// Repeating is safe, because every command may be repeated.
	maxRetries      = 2
	minRetryBackoff = 5 * time.Millisecond
	maxRetryBackoff = 20 * time.Millisecond
)

// Store is a client of one Redis, Sentinel set or Redis Cluster. It is safe for concurrent use.
type Store struct {
	keys   keyspace
	client redis.UniversalClient
	// cluster is nil unless the store is a Redis Cluster.
	cluster *redis.ClusterClient
	sole    *master
	// sentinels is nil unless Sentinels find the master.
	sentinels *sentinels
	masters   masters
	log       *slog.Logger
	panics    *panics.Guard
	trips     *tripCounter
	measure   *measure
	rechecks  chan struct{}

	hooks webhooks

	eventsKept int
	eventsLife time.Duration
}

// Open opens the store of the cluster pin.DefaultCluster.
func Open(rawURL string, log *slog.Logger) (*Store, error) {
	return OpenAs(rawURL, pin.DefaultCluster, panics.New(), log)
}

// OpenAs returns a Store without connecting. Its errors do not show the URL, which may contain a password.
func OpenAs(rawURL, cluster string, guard *panics.Guard, log *slog.Logger) (*Store, error) {
	if err := pin.ValidCluster(cluster); err != nil {
		return nil, err
	}
	at, err := parseAddress(rawURL)
	if err != nil {
		return nil, fmt.Errorf("redis URL: %w", err)
	}
	// go-redis logs what every call also returns.
	logging.Disable()
	s := &Store{
		keys: keyspace(cluster), log: log, panics: guard, trips: &tripCounter{}, measure: &measure{}, rechecks: make(chan struct{}, 1),
		masters:    masters{byAddress: make(map[string]*master)},
		hooks:      webhooks{unmarked: make(map[ring.RoomID]bool)},
		eventsKept: DefaultEventsKept, eventsLife: DefaultEventsLife,
	}
	if at.kind == kindCluster {
		s.cluster = redis.NewClusterClient(at.cluster(func(member *redis.Options) *redis.Client {
			return s.addMaster(member, func() *redis.Client { return redis.NewClient(member) }).client
		}))
		s.client = s.cluster
		return s, nil
	}
	if at.kind == kindSentinel {
		s.sentinels = newSentinels(&at, guard, log)
		at.options.Dialer = s.sentinels.dial
	}
	s.sole = s.addMaster(at.options, func() *redis.Client { return redis.NewClient(at.options) })
	key := cluster + markerName
	s.sole.marker.Store(&key)
	s.client = s.sole.client
	return s, nil
}

// Close ends the connections. Run must have returned.
func (s *Store) Close() error {
	if s.sentinels != nil {
		s.sentinels.close()
	}
	return s.client.Close()
}

// Ping reports whether the store answers.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.client.Ping(ctx).Err(); err != nil {
		return fmt.Errorf("ping the store: %w", err)
	}
	return nil
}

// RoundTrips counts round trips since Open. A pipeline is one, each repetition is one, and a greeting is none.
func (s *Store) RoundTrips() uint64 { return s.trips.count.Load() }

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

func (t *tripCounter) add(first redis.Cmder) {
	switch first.Name() {
	// These are greetings.
	case "hello", "info", "cluster", "readonly":
	default:
		t.count.Add(1)
	}
}
