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

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/pin"
)

// A marker tells the generations of one master apart. Its text is "<run id>.<nonce>": the run id of the
// server process that it was written on, and something random. It is written where it is missing (the
// master is new, or came back empty, or was flushed) and where it names another process than the one
// that answers (a replica took over, which has the old master's marker but perhaps not its last
// pins; or the server was started again from an old file). Whoever finds it so writes it.
//
// There is one per master: on one Redis or a Sentinel set; in a Redis Cluster,
// where a key must lie in a slot of its master, it lies in the lowest one that the master owns.
// renewScript writes a marker unless it names the process already: KEYS[1], ARGV = "<run id>.", nonce. A key
// of another type is overwritten: nothing of ours is lost with it.
const renewScript = `local stands = redis.pcall('GET', KEYS[1])
if type(stands) == 'string' and string.sub(stands, 1, #ARGV[1]) == ARGV[1] then return stands end
redis.call('SET', KEYS[1], ARGV[1] .. ARGV[2])
return ARGV[1] .. ARGV[2]`

// unnamedRun stands for the run id of a server that does not say one: the embedded store, or one whose
// ACL forbids INFO. There only a memory that was lost altogether is noticed, not a failover.
const unnamedRun = "unnamed"

// master is one server that takes writes: the only one, the present one of a Sentinel set, or one
// of a Redis Cluster.
type master struct {
	client *redis.Client
	keys   keyspace
	log    *slog.Logger
	warned atomic.Bool            // that the server may evict pins
	run    atomic.Pointer[string] // run id of the process behind the youngest connection
	marker atomic.Pointer[string] // key of the marker; nil while it is not known
	cold   atomic.Bool            // the last try of the connections failed
	claims gatherer
	clock  clock
}

// greet learns which process is behind a new connection. It runs before the connection is used, so
// nothing is ever said over a connection to a process younger than run.
func (m *master) greet(ctx context.Context, conn *redis.Conn) error {
	info := conn.Info(ctx, "server", "memory")
	run, now, err := runOf(info)
	if err != nil {
		return err
	}
	m.run.Store(&run)
	m.warnOfEviction(info.Val())
	m.clock.learn(now)
	return nil
}

// warnOfEviction says once that the server may throw pins away on its own, as INFO shows it: a managed Redis refuses CONFIG.
func (m *master) warnOfEviction(info string) {
	for line := range strings.Lines(info) {
		policy, found := strings.CutPrefix(strings.TrimSpace(line), "maxmemory_policy:")
		if found && policy != "noeviction" && !m.warned.Swap(true) {
			m.log.Warn("the store may throw pins away on its own, and rooms would split: set maxmemory-policy noeviction", "policy", policy)
		}
	}
}

// runOf reads the run id and the time (0 if it is not there) out of INFO. An error is one of the connection.
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
			micros, _ = strconv.ParseInt(value, 10, 64) // What cannot be read is 0.
		}
	}
	return run, max(micros, 0), nil
}

// isReply tells an error that the server gave as its answer from all others.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// generationOf judges a marker that was read. It is zero unless the marker names the process that
// we are connected to.
func (m *master) generationOf(marker string, err error) pin.Generation {
	run := m.run.Load()
	if err != nil || run == nil || !strings.HasPrefix(marker, *run+".") {
		return 0
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(marker)) // It never returns an error.
	return pin.Generation(max(sum.Sum64(), 1))
}

// generation returns the present generation, and begins one where none stands: one round trip, two
// more to begin one. The marker is read by GETEX PERSIST, a write that changes nothing: a server that refuses writes (too few replicas, a disk
// that is full, a master that became a replica) refuses it too, though it would answer GET.
func (m *master) generation(ctx context.Context) (pin.Generation, error) {
	key := m.marker.Load()
	if key == nil {
		return 0, errNoMarker
	}
	marker, err := m.client.GetEx(ctx, *key, 0).Result()
	if g := m.generationOf(marker, err); g != 0 {
		return g, nil
	}
	if err != nil && !errors.Is(err, redis.Nil) && !redis.HasErrorPrefix(err, "WRONGTYPE") {
		return 0, fmt.Errorf("read the generation: %w", err)
	}
	return m.renew(ctx, *key)
}

// renew writes the marker unless it is right.
func (m *master) renew(ctx context.Context, key string) (pin.Generation, error) {
	run, _, err := runOf(m.client.Info(ctx, "server"))
	if err != nil {
		return 0, err
	}
	m.run.Store(&run)
	nonce := fmt.Sprintf("%016x", pin.NewNonce())
	marker, err := m.client.Eval(ctx, renewScript, []string{key}, run+".", nonce).Text()
	if err != nil {
		return 0, fmt.Errorf("begin a generation: %w", err)
	}
	return m.generationOf(marker, nil), nil
}
