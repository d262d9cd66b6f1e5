package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

// TestOwnersOutliveALongOutage keeps the store away for longer than an owner trusts its last confirmation. While the
// owner sees most of the cluster, people join its open rooms. In a minority it takes nobody new, and still no call ends.
// With the store back, the room of a node that died meanwhile lives again.
func TestOwnersOutliveALongOutage(t *testing.T) {
	t.Parallel() // most of it is waiting
	fleet := storetest.StartAlone(t)
	c := startCluster(t, devcluster.Options{Redis: fleet.URL, Signaling: 1})
	stays, moves := gather(t, c, roomOn(t, "sfu-1", "stays"), 2), gather(t, c, roomOn(t, "sfu-2", "moves"), 2)
	moves.everybodyReceives(t, time.Minute)
	moved := moves.onceOn(t, c, time.Minute)
	k := keep(t, c, []*people{stays})
	visits := send(t, c, 10, func(i int) string {
		if i%10 == 1 {
			return fmt.Sprintf("new-%d", i)
		}
		return stays.room
	})
	visits.waitFor(t, 30*time.Second, 10, "visitors come", succeeded)
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
		if err := c.Kill(t.Context(), name, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
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
	again := moves.onceOn(t, c, time.Minute)
	if again.Node != "sfu-1" || again.Epoch <= moved.Epoch {
		t.Errorf("the room of the dead node went from %s epoch %d to %s epoch %d", moved.Node, moved.Epoch, again.Node, again.Epoch)
	}
	gap := k.untouched(t, c, append(visits.those(succeeded), alone.those(succeeded)...))
	t.Logf("away for %v, trusted the majority after %v; visitors in the majority: %s; in the minority: %s; in again %v after the store's return; longest pause of a stream: %v",
		back.Sub(killedAt).Round(time.Millisecond), trusted.Sub(killedAt).Round(time.Millisecond), visits.summary(), alone.summary(), in.Sub(back).Round(time.Millisecond), gap)
}

func logged(t *testing.T, c *devcluster.Cluster, node, words string) error {
	t.Helper()
	text, err := c.Logs(t.Context(), node)
	if err == nil && !strings.Contains(text, words) {
		err = fmt.Errorf("%s has not logged %q", node, words)
	}
	return err
}
