package e2e

import (
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestSentinelFailoverTouchesNoCall kills the master of a Sentinel set with visitors arriving. New rooms are refused
// until a replica has taken over, known ones are joined, and the old master, back and empty, changes nothing.
func TestSentinelFailoverTouchesNoCall(t *testing.T) {
	t.Parallel() // most of it is waiting
	fleet := storetest.StartSentinel(t)
	c := onStore(t, fleet)
	k := keepElsewhere(t, c, 6)
	visits := send(t, c, 50, keptAndNew(k.calls))
	visits.waitFor(t, 30*time.Second, 20, "visitors come", succeeded)
	killedAt := time.Now()
	fleet.Processes[0].Kill(t)
	visits.waitFor(t, 30*time.Second, 1, "a new room is refused", both(toNew, refusedForTheStore))
	visits.waitFor(t, 30*time.Second, 10, "new rooms open after the failover", both(toNew, succeeded))
	back := visits.those(both(both(toNew, succeeded), within(killedAt, time.Now())))[0].ended
	fleet.Processes[0].Restart(t)
	fleet.Processes[0].BecomesReplica(t)
	visits.waitFor(t, 30*time.Second, 200, "visitors come after the old master's return", succeeded)
	visits.end()
	gap := k.untouched(t, c, visits.those(succeeded))
	onlyNewRoomsWereRefused(t, visits)
	refused := visits.those(refusedForTheStore)
	if last := refused[len(refused)-1]; last.began.After(back.Add(5 * time.Second)) {
		t.Errorf("%s was refused %v after the failover", last.room, last.began.Sub(back))
	}
	t.Logf("new rooms open again %v after the kill; %s; the SFU nodes were asked %d times; longest pause of a stream: %v",
		back.Sub(killedAt).Round(time.Millisecond), visits.summary(), k.looks, gap)
}

func refusedForTheStore(v visit) bool { return v.code() == wire.CodeStoreUnavailable }

// onlyNewRoomsWereRefused fails if anybody could not join a room that was known, or was refused for
// another reason than the store.
func onlyNewRoomsWereRefused(t *testing.T, visits *visitors) {
	t.Helper()
	for _, v := range visits.those(func(v visit) bool { return v.err != nil }) {
		if !toNew(v) || !refusedForTheStore(v) {
			t.Errorf("a visitor of %s: %v", v.room, v.err)
		}
	}
}
