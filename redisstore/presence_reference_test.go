package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

// counting is the common design that ours replaces: a score for each user, a counter of the user's sockets, and a sweep
// that evicts first and announces afterwards.
type counting struct {
	presenceRig

	told []string // what was announced
}

func (c *counting) open(user string) {
	n, err := c.raw.HIncrBy(c.t.Context(), "refcount", user, 1).Result()
	c.must(err)
	c.heartbeat(user)
	if n == 1 {
		c.told = append(c.told, "+"+user)
	}
}

func (c *counting) heartbeat(user string) {
	c.must(c.raw.ZAddGT(c.t.Context(), "online", redis.Z{Score: float64(time.Now().UnixMilli()), Member: user}).Err())
}

func (c *counting) close(user string) {
	n, err := c.raw.HIncrBy(c.t.Context(), "refcount", user, -1).Result()
	c.must(err)
	if n <= 0 {
		c.must(c.raw.HDel(c.t.Context(), "refcount", user).Err())
		c.must(c.raw.ZRem(c.t.Context(), "online", user).Err())
		c.told = append(c.told, "-"+user)
	}
}

// sweep is killed after so many steps.
func (c *counting) sweepUntil(steps int) {
	ctx, until := c.t.Context(), strconv.FormatInt(time.Now().UnixMilli(), 10)
	dead, err := c.raw.ZRangeByScore(ctx, "online", &redis.ZRangeBy{Min: "0", Max: until}).Result()
	c.must(err)
	if steps == 1 || len(dead) == 0 {
		return
	}
	c.must(c.raw.ZRemRangeByScore(ctx, "online", "0", until).Err())
	c.must(c.raw.HDel(ctx, "refcount", dead...).Err())
	if steps == 2 {
		return
	}
	for _, user := range dead {
		c.told = append(c.told, "-"+user)
	}
}

// Of a user's three sockets two are at a signaling node that is killed. The counter never loses them, so the leave of the
// last one is not noticed. Leases lapse.
func TestCounterLeaks(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		ctx, r := t.Context(), newPresenceRig(t, server).settled()
		theirs := &counting{presenceRig: r}
		living, dead := lease("ann", "1", ""), []presence.Lease{lease("ann", "2", ""), lease("ann", "3", "")}
		r.must(r.Add(ctx, append(dead, living)))
		for range 3 {
			theirs.open("ann")
		}
		for range 3 { // Only one node sends heartbeats.
			r.passSwept(30 * time.Minute)
			_, err := r.Renew(ctx, []presence.Lease{living})
			r.must(err)
			theirs.heartbeat("ann")
		}
		if got := r.ask("ann"); got.State != presence.Online || got.Connections != 1 {
			t.Errorf("ann is %+v", got)
		}
		r.must(r.Remove(ctx, []presence.Lease{living}))
		theirs.close("ann")
		r.saysOf("ann", "+-")
		for range 5 { // Whoever comes again and leaves is not seen leaving either.
			theirs.open("ann")
			theirs.close("ann")
		}
		if got := strings.Join(theirs.told, " "); got != "+ann" {
			t.Errorf("the counter says %s: it leaks no more, and this test shows nothing", got)
		}
	})
}

// A sweeper is killed before it asks the store, after some shards, or with the reply on its way. Another one goes on, and
// the leave is logged once. Where announcing is a step of its own it is lost.
func TestSweeperIsKilled(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		for name, killed := range map[string]func(r presenceRig, ctx context.Context){
			"before it asks": func(presenceRig, context.Context) {},
			"before the user's shard": func(r presenceRig, ctx context.Context) {
				r.must(r.sweep(ctx, []*part[struct{}]{{keys: r.keys[(presence.ShardOf("ann")+1)%presence.Shards]}}))
			},
			"after the user's shard": func(r presenceRig, ctx context.Context) {
				r.must(r.sweep(ctx, []*part[struct{}]{{keys: r.keys[presence.ShardOf("ann")]}}))
			},
			"with the reply on its way": func(r presenceRig, ctx context.Context) {
				ctx, cancel := context.WithCancel(ctx)
				go cancel()
				_ = r.Sweep(ctx) // in time or not
			},
		} {
			t.Run(name, func(t *testing.T) {
				r := newPresenceRig(t, server)
				r.must(r.raw.FlushAll(t.Context()).Err())
				r = r.settled()
				r.must(r.Add(t.Context(), []presence.Lease{lease("ann", "1", "")}))
				for range 4 {
					r.saysOf("ann", "+")
					r.must(r.Sweep(t.Context()))
					r.pass(15 * time.Minute)
				}
				killed(r, t.Context())
				for range 3 {
					r.must(r.Sweep(t.Context()))
					r.pass(15 * time.Minute)
				}
				r.saysOf("ann", "+-")
			})
		}
		theirs := &counting{presenceRig: newPresenceRig(t, server)}
		theirs.open("ann")
		theirs.sweepUntil(2)
		theirs.sweepUntil(3)
		if got := strings.Join(theirs.told, " "); got != "+ann" {
			t.Errorf("the other sweeper says %s: it loses nothing, and this test shows nothing", got)
		}
	})
}

// BenchmarkHeartbeat is a heartbeat of so many connections, beside one command for each of them.
func BenchmarkHeartbeat(b *testing.B) {
	fleet := storetest.StartAlone(b)
	for _, sockets := range []int{10_000, 100_000} {
		b.Run(strconv.Itoa(sockets), func(b *testing.B) { benchmarkHeartbeat(b, fleet.Server, sockets) })
	}
}

func benchmarkHeartbeat(b *testing.B, server storetest.Server, sockets int) {
	b.Helper()
	r := newPresenceRig(b, server)
	ctx, all := b.Context(), make([]presence.Lease, sockets)
	for i := range all {
		all[i] = lease("user-"+strconv.Itoa(i), fmt.Sprintf("p-%016x", i), "room-"+strconv.Itoa(i/4))
	}
	r.must(r.raw.FlushAll(ctx).Err())
	r.must(r.Add(ctx, all))
	bytes := int64(0)
	for _, keys := range r.keys {
		for _, key := range []string{keys.leases, keys.users} {
			bytes += r.raw.MemoryUsage(ctx, key, 0).Val()
		}
	}
	run := func(name string, heartbeat func() error) {
		b.Run(name, func(b *testing.B) {
			r.must(r.raw.ConfigResetStat(ctx).Err())
			trips := r.store.RoundTrips()
			for b.Loop() {
				r.must(heartbeat())
			}
			commands, micros := served(r.raw.Info(ctx, "commandstats").Val())
			b.ReportMetric(commands/float64(b.N), "commands/heartbeat")
			b.ReportMetric(micros/1000/float64(b.N), "server-ms/heartbeat")
			b.ReportMetric(float64(r.store.RoundTrips()-trips)/float64(b.N), "trips/heartbeat")
			b.ReportMetric(float64(bytes)/float64(sockets), "store-B/user")
		})
	}
	run("leases", func() error { _, err := r.Renew(ctx, all); return err })
	run("sweep", func() error { return r.Sweep(ctx) })
	if sockets > 10_000 {
		return
	}
	run("one_by_one", func() error {
		for _, l := range all {
			if err := r.store.client.ZAddGT(ctx, "online", redis.Z{Score: float64(time.Now().UnixMilli()), Member: member(l)}).Err(); err != nil {
				return err
			}
		}
		return nil
	})
}

// served is how many commands came over connections, and what they took. What scripts call is in the scripts' time.
func served(info string) (commands, micros float64) {
	for line := range strings.Lines(info) {
		name, stats, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":")
		var calls, usec float64
		if _, err := fmt.Sscanf(stats, "calls=%f,usec=%f,", &calls, &usec); err == nil && (name == "eval" || name == "zadd") {
			if name == "eval" || commands == 0 {
				commands, micros = calls, usec
			}
		}
	}
	return commands, micros
}
