package redisstore

import (
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
)

// While one master of a Cluster is silent, whoever died goes offline on the others.
func TestASilentMasterKeepsNobodyElseOnline(t *testing.T) {
	t.Parallel() // most of it is waiting
	fleet := storetest.StartCluster(t)
	r := newPresenceRig(t, fleet.Server).settled()
	silent := fleet.Processes[0]
	var leases []presence.Lease
	var elsewhere []string
	for i := range 200 {
		l := lease("user-"+strconv.Itoa(i), "1", "r")
		leases = append(leases, l)
		if fleet.MasterOf(t, r.keys[presence.ShardOf(l.User)].users) != silent {
			elsewhere = append(elsewhere, l.User)
		}
	}
	r.must(r.Add(t.Context(), leases))
	r.passSwept(45 * time.Minute)
	r.pass(15 * time.Minute)
	silent.Freeze(t)
	t.Cleanup(func() { silent.Thaw(t) })
	if r.Sweep(within(t, 2*time.Second)) == nil {
		t.Error("a silent master was swept")
	}
	found, err := r.Ask(t.Context(), elsewhere)
	r.must(err)
	for _, status := range found {
		if status.State != presence.Offline {
			t.Errorf("%s in shard %d is %s", status.User, presence.ShardOf(status.User), status.State)
		}
	}
	if len(found) != len(elsewhere) || len(found) < 80 {
		t.Errorf("%d of %d users were found", len(found), len(elsewhere))
	}
}
