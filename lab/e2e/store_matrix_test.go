package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

// matrixVariable asks for every fault of the matrix; a common run has the short ones.
const matrixVariable = "HOLDFAST_STORE_MATRIX"

// refusedAtMost bounds how long newcomers to open rooms may be refused, whatever the store does.
const refusedAtMost = 2 * time.Second

// distantStore is a redis-server behind a relay, with a replica where a fault wants one.
type distantStore struct {
	t      *testing.T
	master storetest.Fleet
	away   *storetest.Distance
	came   []visit // who came in, in all rows
}

func (s *distantStore) do(args ...any) {
	s.t.Helper()
	if err := s.master.Raw.Do(s.t.Context(), args...).Err(); err != nil {
		s.t.Fatalf("%v: %v", args, err)
	}
}

type storeFault struct {
	name  string
	long  time.Duration
	short bool // in a common run too
	begin func(s *distantStore)
	end   func(s *distantStore)
}

func storeFaults() []storeFault {
	nothing := func(*distantStore) {}
	far := func(trip time.Duration) storeFault {
		return storeFault{
			name: fmt.Sprintf("%v of latency", trip), long: 8 * time.Second,
			begin: func(s *distantStore) { s.away.SetRoundTrip(trip) },
			end:   func(s *distantStore) { s.away.SetRoundTrip(0) },
		}
	}
	const refusing = 20 * time.Second // longer than an owner trusts its last confirmation
	return []storeFault{
		{"FLUSHALL", 4 * time.Second, true, func(s *distantStore) { s.do("flushall") }, nothing},
		{"FLUSHALL five times in a row", 4 * time.Second, false, func(s *distantStore) {
			for range 5 {
				s.do("flushall")
				<-time.After(50 * time.Millisecond)
			}
		}, nothing},
		{
			"killed, and back empty after 4 s", 4 * time.Second, false,
			func(s *distantStore) { s.master.Processes[0].Kill(s.t) },
			func(s *distantStore) { s.master.Processes[0].Restart(s.t) },
		},
		{"killed, and back empty at once, twice", 4 * time.Second, true, emptied, emptied},
		{
			"OOM", refusing, false, func(s *distantStore) { s.do("config", "set", "maxmemory", "1") },
			func(s *distantStore) { s.do("config", "set", "maxmemory", "0") },
		},
		{
			"read-only (it became a replica)", refusing, false, func(s *distantStore) { s.do("replicaof", "127.0.0.1", "1") },
			func(s *distantStore) { s.do("replicaof", "no", "one") },
		},
		withLostReplica(refusing),
		{"CLIENT PAUSE", 5 * time.Second, true, func(s *distantStore) { s.do("client", "pause", "5000", "all") }, nothing},
		far(100 * time.Millisecond), far(150 * time.Millisecond), far(400 * time.Millisecond),
	}
}

func emptied(s *distantStore) {
	s.master.Processes[0].Kill(s.t)
	s.master.Processes[0].Restart(s.t)
}

// withLostReplica is a master that demands a replica, and loses it.
func withLostReplica(long time.Duration) storeFault {
	return storeFault{
		name: "NOREPLICAS (its replica died)", long: long,
		begin: func(s *distantStore) {
			replica := storetest.StartAlone(s.t)
			host, port, _ := strings.Cut(s.master.Processes[0].Address, ":")
			if err := replica.Raw.Do(s.t.Context(), "replicaof", host, port).Err(); err != nil {
				s.t.Fatal(err)
			}
			s.do("config", "set", "min-replicas-to-write", "1")
			eventually(s.t, time.Minute, "the master counts its replica", func() error {
				return s.master.Raw.Set(s.t.Context(), "a-write", "x", time.Second).Err()
			})
			replica.Processes[0].Kill(s.t)
		},
		end: func(s *distantStore) { s.do("config", "set", "min-replicas-to-write", "0") },
	}
}

// TestStoreFaultMatrix lets people come to open and new rooms through each fault of the store, and prints what they saw.
// Newcomers to open rooms are never refused for longer than two seconds, and nobody's call moves. One call is visited
// only at the end: visitors bring lost pins back too.
func TestStoreFaultMatrix(t *testing.T) {
	t.Parallel()
	takes(t, 1)
	s := &distantStore{t: t, master: storetest.StartAlone(t)}
	s.away = storetest.Away(t, s.master.Processes[0].Address)
	c := startCluster(t, devcluster.Options{Redis: "redis://" + s.away.Address})
	k := keepElsewhere(t, c, 3)
	table := []string{"| fault | joins to known rooms | joins to new rooms | refused at most for | slowest join to a known room | longest media gap | a pin was missing until |", "|---|---|---|---|---|---|---|"}
	for _, f := range storeFaults() {
		if f.short || os.Getenv(matrixVariable) != "" {
			table = append(table, s.row(c, k, f))
		}
	}
	alone := send(t, c, 20, func(int) string { return k.calls[0].room })
	alone.waitFor(t, 30*time.Second, 10, "visitors come to the call that had none", succeeded)
	alone.end()
	k.untouched(t, c, append(s.came, alone.those(succeeded)...))
	t.Logf("what people saw of each fault of the store:\n%s", strings.Join(table, "\n"))
}

func (s *distantStore) row(c *devcluster.Cluster, k *kept, f storeFault) string {
	s.t.Helper()
	k.forgetGaps()
	prefix := "new-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(f.name))
	visits := send(s.t, c, 20, func(i int) string {
		if i%5 == 1 {
			return fmt.Sprintf("%s-%d", prefix, i)
		}
		return k.calls[1+i%(len(k.calls)-1)].room
	})
	visits.waitFor(s.t, 30*time.Second, 10, "visitors come", succeeded)
	watched := s.watchPins(k)
	f.begin(s)
	<-time.After(f.long)
	f.end(s)
	visits.waitFor(s.t, time.Minute, 10, "visitors come after "+f.name, succeeded)
	visits.waitFor(s.t, time.Minute, 2, "new rooms open after "+f.name, both(toNew, succeeded))
	visits.end()
	stand := watched()
	s.came = append(s.came, visits.those(succeeded)...)
	for _, v := range visits.those(func(v visit) bool { return v.err != nil && !refusedForTheStore(v) }) {
		s.t.Errorf("%s: a visitor of %s: %v", f.name, v.room, v.err)
	}
	known, fresh := visits.those(func(v visit) bool { return !toNew(v) }), visits.those(toNew)
	refused, slowest := longestRefusal(known)
	if refused > refusedAtMost {
		s.t.Errorf("%s: newcomers to an open room were refused for %v, want at most %v: %s", f.name, refused, refusedAtMost, visits.summary())
	}
	return fmt.Sprintf("| %s, %v | %s | %s | %v | %v | %v | %v |", f.name, f.long, admitted(known), admitted(fresh),
		refused.Round(time.Millisecond), slowest.Round(time.Millisecond), k.longestGap(s.t).Round(time.Millisecond), stand.Round(10*time.Millisecond))
}

// watchPins looks for the pins of all calls. stop returns when, after its begin, one was last missing.
func (s *distantStore) watchPins(k *kept) (stop func() time.Duration) {
	ctx, cancel := context.WithCancel(s.t.Context())
	began, missing := time.Now(), time.Duration(0)
	var watch sync.WaitGroup
	watch.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			keys, err := s.master.Raw.Keys(ctx, "*:node").Result()
			for _, g := range k.calls {
				if ctx.Err() == nil && (err != nil || !slices.ContainsFunc(keys, func(key string) bool { return strings.Contains(key, "{"+g.room+"}") })) {
					missing = time.Since(began)
				}
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	})
	return func() time.Duration {
		cancel()
		watch.Wait()
		return missing
	}
}

// longestRefusal is the longest time from a refusal to the room's next success, and the slowest successful join.
func longestRefusal(visits []visit) (refused, slowest time.Duration) {
	for _, v := range visits {
		if v.err == nil {
			slowest = max(slowest, v.ended.Sub(v.began))
			continue
		}
		next := time.Now()
		for _, w := range visits {
			if w.room == v.room && w.err == nil && w.ended.After(v.ended) && w.ended.Before(next) {
				next = w.ended
			}
		}
		refused = max(refused, next.Sub(v.began))
	}
	return refused, slowest
}

func admitted(visits []visit) string {
	in := 0
	for _, v := range visits {
		if v.err == nil {
			in++
		}
	}
	return fmt.Sprintf("%d of %d", in, len(visits))
}
