package e2e

import (
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

// TestEmptiedStoreMovesNothing restarts the store empty, twice, while fifty people a second
// join: rooms that are open, and new ones. One call is visited only when the owners have refreshed their pins: the visitors
// of the others bring those back too, by asking who has the room open.
func TestEmptiedStoreMovesNothing(t *testing.T) {
	t.Parallel() // most of it is waiting
	fleet := storetest.StartAlone(t)
	c := onStore(t, fleet)
	k := keepElsewhere(t, c, 6)
	began := time.Now()
	visits := send(t, c, 50, keptAndNew(k.calls[1:]))
	visits.waitFor(t, 30*time.Second, 20, "visitors come", succeeded)
	for range 2 {
		fleet.Processes[0].Kill(t)
		fleet.Processes[0].Restart(t)
		visits.waitFor(t, 30*time.Second, 50, "visitors come after the store came back", succeeded)
		visits.waitFor(t, 30*time.Second, 10, "new rooms open after the store came back", both(toNew, succeeded))
	}
	// Long enough for every owner's next refresh, which would hand over what it lost.
	visits.waitFor(t, time.Minute, 300, "visitors come through the next refreshes", succeeded)
	took := time.Since(began)
	visits.end()
	alone := send(t, c, 20, func(int) string { return k.calls[0].room })
	alone.waitFor(t, 30*time.Second, 10, "visitors come to the call that had none", succeeded)
	alone.end()
	gap := k.untouched(t, c, append(visits.those(succeeded), alone.those(succeeded)...))
	for _, v := range visits.those(func(v visit) bool { return v.err != nil && !refusedForTheStore(v) }) {
		t.Errorf("a visitor of %s: %v", v.room, v.err)
	}
	t.Logf("%s, %.0f a second; the SFU nodes were asked %d times; longest pause of a stream: %v",
		visits.summary(), float64(len(visits.those(everyVisit)))/took.Seconds(), k.looks, gap)
}
