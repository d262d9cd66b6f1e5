package redisstore

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
)

// markerTTL is shorter than the life of a pin that an owner prolongs. So a clock that is set forward far enough to
// expire pins also expires the marker, which begins a new incarnation. Each owner renews the marker every second.
const markerTTL = time.Minute

// unnamedRun stands for a server that tells no run id. Its failovers are not noticed.
const unnamedRun = "unnamed"

type master struct {
	client *redis.Client
	keys   keyspace
	log    *slog.Logger
	panics *panics.Guard
	warned atomic.Bool
	// warnedOfACL keeps each new connection from repeating the warning.
	warnedOfACL atomic.Bool
	run         atomic.Pointer[string]
	// marker is the marker's key; nil while it is unknown.
	marker atomic.Pointer[string]
	// cold says that the last ping failed.
	cold atomic.Bool
	// silent says that the server did not tell its incarnation.
	silent atomic.Bool
	// left says that the Cluster no longer lists the server.
	left   atomic.Bool
	claims batcher
	clock  clock
}

var errBroke = errors.New("the store's reply broke its reading")

// catch runs f and turns a panic of it into an error.
func (m *master) catch(what string, f func() error) error {
	err := errBroke
	m.panics.Catch(m.log, what, func() { err = f() })
	return err
}

// greet asks for the run id before a connection is used, so that the known run is never older than the process that
// answers.
func (m *master) greet(ctx context.Context, conn *redis.Conn) error {
	info := conn.Info(ctx, "server", "memory")
	run, now, err := runOf(info)
	if err != nil {
		return err
	}
	m.run.Store(&run)
	m.warnOfACL(info.Err())
	m.warnOfEviction(info.Val())
	m.clock.learn(now)
	return nil
}

// warnOfEviction reads INFO, because a managed Redis refuses CONFIG.
func (m *master) warnOfEviction(info string) {
	for line := range strings.Lines(info) {
		policy, found := strings.CutPrefix(strings.TrimSpace(line), "maxmemory_policy:")
		if found && policy != "noeviction" && !m.warned.Swap(true) {
			m.log.Warn("the store may throw pins away on its own, and rooms would split: set maxmemory-policy noeviction", "policy", policy)
		}
	}
}

// warnOfACL warns once of a user that may not run INFO.
func (m *master) warnOfACL(err error) {
	if redis.HasErrorPrefix(err, "NOPERM") && !m.warnedOfACL.Swap(true) {
		m.log.Warn("the store's user may not run INFO, so that a failover or a restart of the store is taken for a quiet moment, and rooms may split: "+
			"allow it with ACL SETUSER and +info", "error", err)
	}
}

func runOf(info *redis.StringCmd) (run string, micros int64, err error) {
	text, err := info.Result()
	if err != nil && !isReply(err) {
		return "", 0, fmt.Errorf("ask the store who it is: %w", err)
	}
	run = unnamedRun
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case name == "run_id" && value != "":
			run = value
		case name == "server_time_usec":
			// micros is 0 if the value is unreadable.
			micros, _ = strconv.ParseInt(value, 10, 64)
		}
	}
	return run, max(micros, 0), nil
}

func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// incarnationOf returns 0 unless the marker names the process that answers.
func (m *master) incarnationOf(marker string, err error) pin.Incarnation {
	run := m.run.Load()
	if err != nil || run == nil || !strings.HasPrefix(marker, *run+".") {
		return 0
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(marker))
	return pin.Incarnation(max(sum.Sum64(), 1))
}

func (m *master) readMarker(ctx context.Context, pipe redis.Pipeliner) *redis.StringCmd {
	if key := m.marker.Load(); key != nil {
		return pipe.Get(ctx, *key)
	}
	return redis.NewStringResult("", errNoMarker)
}

// incarnation reads the marker with GETEX, which is a write: a server that refuses writes still answers GET.
func (m *master) incarnation(ctx context.Context) (pin.Incarnation, error) {
	key := m.marker.Load()
	if key == nil {
		return 0, errNoMarker
	}
	marker, err := m.client.GetEx(ctx, *key, markerTTL).Result()
	if g := m.incarnationOf(marker, err); g != 0 {
		return g, nil
	}
	if err != nil && !errors.Is(err, redis.Nil) && !redis.HasErrorPrefix(err, "WRONGTYPE") {
		return 0, fmt.Errorf("read the incarnation: %w", err)
	}
	return m.renew(ctx, *key)
}

func (m *master) renew(ctx context.Context, key string) (pin.Incarnation, error) {
	run, _, err := runOf(m.client.Info(ctx, "server"))
	if err != nil {
		return 0, err
	}
	m.run.Store(&run)
	nonce := fmt.Sprintf("%016x", pin.NewNonce())
	marker, err := m.client.Eval(ctx, renewScript, []string{key}, run+".", nonce, int(markerTTL.Seconds())).Text()
	if err != nil {
		return 0, fmt.Errorf("begin an incarnation: %w", err)
	}
	return m.incarnationOf(marker, nil), nil
}
