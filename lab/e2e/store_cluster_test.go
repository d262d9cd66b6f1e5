package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

// TestClusterWithoutASlotOwner kills one of the three masters of a Redis Cluster, over TLS, with visitors
// arriving: only new rooms of its slots are refused, and nobody else notices.
func TestClusterWithoutASlotOwner(t *testing.T) {
	t.Parallel() // most of it is waiting
	fleet := storetest.StartClusterTLS(t)
	c := onStore(t, fleet)
	k := keepElsewhere(t, c, 6)
	owner := make(map[string]*storetest.Process) // found now, while every slot has one
	for i := range 3000 {
		room := fmt.Sprintf("new-%d", i)
		owner[room] = fleet.MasterOf(t, "room:{"+room+"}:node")
	}
	dead := fleet.MasterOf(t, "room:{"+k.calls[0].room+"}:node")
	ofDead := func(v visit) bool { return toNew(v) && owner[v.room] == dead }
	visits := send(t, c, 50, keptAndNew(k.calls))
	visits.waitFor(t, 30*time.Second, 20, "visitors come", succeeded)
	killedAt := time.Now()
	dead.Kill(t)
	away := within(killedAt, time.Now().Add(time.Hour))
	visits.waitFor(t, 30*time.Second, 5, "new rooms of the dead master are refused", both(ofDead, refusedForTheStore))
	visits.waitFor(t, 30*time.Second, 10, "new rooms of the others open", both(both(toNew, away), succeeded))
	back := time.Now()
	for _, v := range visits.those(both(both(ofDead, succeeded), within(killedAt, back))) {
		t.Errorf("%s was placed on %s without its master", v.room, v.at.Node)
	}
	dead.Restart(t)
	visits.waitFor(t, 30*time.Second, 3, "new rooms of the master that is back open", both(ofDead, succeeded))
	first := visits.those(both(both(ofDead, succeeded), within(back, time.Now())))[0].ended
	visits.waitFor(t, 30*time.Second, 150, "visitors come through the next refreshes", succeeded)
	visits.end()
	gap := k.untouched(t, c, visits.those(succeeded))
	for _, v := range visits.those(func(v visit) bool { return v.err != nil }) {
		if !ofDead(v) || !refusedForTheStore(v) {
			t.Errorf("a visitor of %s %v after the kill: %v", v.room, v.began.Sub(killedAt).Round(time.Millisecond), v.err)
		}
	}
	t.Logf("away for %v, its new rooms open %v after its return; %s; the SFU nodes were asked %d times; longest pause of a stream: %v",
		back.Sub(killedAt).Round(time.Millisecond), first.Sub(back).Round(time.Millisecond), visits.summary(), k.looks, gap)
}
