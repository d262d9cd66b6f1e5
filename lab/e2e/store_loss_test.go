package e2e

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

// TestOwnersOutliveALongOutage keeps the store away for longer than an owner trusts its last confirmation. While the
// owner sees most of the cluster, people join its open rooms. In a minority it takes nobody new, and still no call ends.
// With the store back, the room of a node that died meanwhile lives again. Another cluster on the same store, with nodes
// and rooms of the same names, keeps its call.
func TestOwnersOutliveALongOutage(t *testing.T) {
	t.Parallel()
	takes(t, 1)
	fleet := storetest.StartAlone(t)
	c := startCluster(t, devcluster.Options{Redis: fleet.URL, Signaling: 1})
	stays, moves := gather(t, c, roomOn(t, "sfu-1", "stays"), 2), gather(t, c, roomOn(t, "sfu-2", "moves"), 2)
	moves.everybodyReceives(t, time.Minute)
	moved := moves.onceOn(t, c)
	k := keep(t, c, []*people{stays})
	visits := send(t, c, 10, func(i int) string {
		if i%10 == 1 {
			return fmt.Sprintf("new-%d", i)
		}
		return stays.room
	})
	visits.waitFor(t, 30*time.Second, 10, "visitors come", succeeded)
	other := startCluster(t, devcluster.Options{Redis: fleet.URL, SFU: 1, Signaling: 1}) // It shares the store, and the names.
	same := gather(t, other, stays.room, 2)
	same.everybodyReceives(t, time.Minute)
	untouched := same.onceOn(t, other)
	killedAt := time.Now()
	fleet.Processes[0].Kill(t)

	const byMajority = "pin taken as confirmed by a gossip majority"
	eventually(t, 40*time.Second, "the owner takes the majority's word for the store's", func() error { return logged(t, c, "sfu-1", byMajority) })
	trusted := time.Now()
	visits.waitFor(t, 30*time.Second, 15, "visitors come by the majority's word", both(succeeded, within(trusted, time.Now().Add(time.Hour))))
	visits.end()
	onlyNewRoomsWereRefused(t, visits)
	for _, v := range visits.those(both(both(toNew, succeeded), within(killedAt, time.Now()))) {
		t.Errorf("%s was placed on %s without a store", v.room, v.at.Node)
	}

	for _, name := range []string{"sfu-2", "sfu-3"} { // Two of four are no majority.
		kill(t, c, name)
	}
	alone := send(t, c, 10, func(int) string { return stays.room })
	alone.waitFor(t, 40*time.Second, 1, "the minority takes nobody new", refusedForTheStore)
	since := time.Now()
	alone.waitFor(t, 30*time.Second, 10, "the minority goes on refusing", refusedForTheStore)
	for _, v := range alone.those(both(succeeded, within(since, time.Now()))) {
		t.Errorf("%s took a visitor in the minority, on %s", v.room, v.at.Node)
	}
	stays.everybodyReceives(t, time.Minute)

	fleet.Processes[0].Restart(t)
	back := time.Now()
	alone.waitFor(t, 30*time.Second, 5, "people join again", both(succeeded, within(back, time.Now().Add(time.Hour))))
	in := alone.those(both(succeeded, within(back, time.Now())))[0].ended
	moves.everybodyReceives(t, 30*time.Second)
	alone.end()
	again := moves.onceOn(t, c)
	if again.Node != "sfu-1" || again.Epoch <= moved.Epoch {
		t.Errorf("the room of the dead node went from %s epoch %d to %s epoch %d", moved.Node, moved.Epoch, again.Node, again.Epoch)
	}
	same.everybodyReceives(t, 30*time.Second)
	sameRoom(t, untouched, same.onceOn(t, other))
	gap := k.untouched(t, c, append(visits.those(succeeded), alone.those(succeeded)...))
	t.Logf("away for %v, trusted the majority after %v; visitors in the majority: %s; in the minority: %s; in again %v after the store's return; longest pause of a stream: %v",
		back.Sub(killedAt).Round(time.Millisecond), trusted.Sub(killedAt).Round(time.Millisecond), visits.summary(), alone.summary(), in.Sub(back).Round(time.Millisecond), gap)
}

// TestSentinelFailoverTouchesNoCall kills the master of a Sentinel set with visitors arriving. New rooms are refused
// until a replica has taken over, known ones are joined, and the old master, back and empty, changes nothing.
func TestSentinelFailoverTouchesNoCall(t *testing.T) {
	t.Parallel()
	takes(t, 1)
	l := visited(t, storetest.StartSentinel(t))
	writes := writeTo(t, l.fleet)
	l.loses(t, l.fleet.Processes[0])
	l.visits.waitFor(t, time.Minute, 1, "a new room is refused", both(toNew, refusedForTheStore))
	l.visits.waitFor(t, time.Minute, 10, "new rooms open after the failover", both(toNew, succeeded))
	l.dead.Restart(t)
	l.dead.BecomesReplica(t)
	// A slow machine may make the Sentinels choose again: what they refuse to a client of ours, they may refuse to the cluster.
	later := func(v visit) bool { return v.began.After(writes.refusedAt().Add(5 * time.Second)) }
	l.visits.waitFor(t, time.Minute, 10, "new rooms open long after the last refusal of the store", both(both(toNew, succeeded), later))
	l.end(t)
	onlyNewRoomsWereRefused(t, l.visits)
	last := writes.refusedAt()
	refused := l.visits.those(both(refusedForTheStore, later))
	if len(refused)*50 <= len(l.visits.those(both(both(toNew, succeeded), later))) {
		return // On a slow machine one in fifty may wait too long for the store.
	}
	for _, v := range refused {
		t.Errorf("%s was refused %v after the store refused its last write", v.room, v.began.Sub(last).Round(time.Millisecond))
	}
}

// writing is a client that writes to the store all the time.
type writing struct{ refused atomic.Int64 } // Unix nanoseconds of the last refusal's end

func writeTo(t *testing.T, fleet storetest.Fleet) *writing {
	t.Helper()
	w := new(writing)
	w.refused.Store(time.Now().UnixNano())
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() {
		for tick := time.NewTicker(100 * time.Millisecond); ctx.Err() == nil; <-tick.C {
			attempt, done := context.WithTimeout(ctx, time.Second)
			if err := fleet.Raw.Set(attempt, "e2e", "", time.Second).Err(); err != nil {
				w.refused.Store(time.Now().UnixNano())
			}
			done()
		}
	})
	t.Cleanup(func() { cancel(); ended.Wait() })
	return w
}

func (w *writing) refusedAt() time.Time { return time.Unix(0, w.refused.Load()) }

// TestClusterWithoutASlotOwner kills one of the three masters of a Redis Cluster, over TLS, with visitors
// arriving: only new rooms of its slots are refused, and nobody else notices.
func TestClusterWithoutASlotOwner(t *testing.T) {
	t.Parallel()
	takes(t, 1)
	l := visited(t, storetest.StartClusterTLS(t))
	owner := make(map[string]*storetest.Process) // found now, while every slot has one
	for i := range 3000 {
		room := fmt.Sprintf("new-%d", i)
		owner[room] = l.fleet.MasterOf(t, "room:{"+room+"}:node")
	}
	l.loses(t, l.fleet.MasterOf(t, "room:{"+l.calls[0].room+"}:node"))
	ofDead := func(v visit) bool { return toNew(v) && owner[v.room] == l.dead }
	l.visits.waitFor(t, time.Minute, 5, "new rooms of the dead master are refused", both(ofDead, refusedForTheStore))
	l.visits.waitFor(t, time.Minute, 10, "new rooms of the others open", both(both(toNew, l.since()), succeeded))
	for _, v := range l.visits.those(both(both(ofDead, succeeded), l.since())) {
		t.Errorf("%s was placed on %s without its master", v.room, v.at.Node)
	}
	l.dead.Restart(t)
	l.visits.waitFor(t, time.Minute, 3, "new rooms of the master that is back open", both(ofDead, succeeded))
	l.visits.waitFor(t, time.Minute, 80, "visitors come through the next refreshes", succeeded)
	l.end(t)
	for _, v := range l.visits.those(func(v visit) bool { return v.err != nil }) {
		if !ofDead(v) || !refusedForTheStore(v) {
			t.Errorf("a visitor of %s %v after the kill: %v", v.room, v.began.Sub(l.killed).Round(time.Millisecond), v.err)
		}
	}
}

// loss is a set of servers of which one is to be lost, under calls and visitors.
type loss struct {
	*kept

	c      *devcluster.Cluster
	fleet  storetest.Fleet
	visits *visitors
	dead   *storetest.Process
	killed time.Time
}

func visited(t *testing.T, fleet storetest.Fleet) *loss {
	t.Helper()
	l := &loss{c: startCluster(t, devcluster.Options{Redis: fleet.URL}), fleet: fleet}
	l.kept = keepElsewhere(t, l.c, 6)
	return l
}

// loses kills a server when visitors come.
func (l *loss) loses(t *testing.T, server *storetest.Process) {
	t.Helper()
	l.visits = send(t, l.c, 20, keptAndNew(l.calls, "new"))
	l.visits.waitFor(t, time.Minute, 20, "visitors come", succeeded)
	l.dead, l.killed = server, time.Now()
	server.Kill(t)
}

// since is of a visit that began after the loss.
func (l *loss) since() func(visit) bool { return within(l.killed, time.Now().Add(time.Hour)) }

func (l *loss) end(t *testing.T) {
	t.Helper()
	l.visits.end()
	gap := l.untouched(t, l.c, l.visits.those(succeeded))
	t.Logf("%s; the media nodes were asked %d times; longest pause of a stream: %v", l.visits.summary(), l.looks, gap)
}
