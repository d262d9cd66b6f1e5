package e2e

import (
	"testing"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestTheOnlyMediaNodeComesBack kills the only media node and starts it again at the same address. Its calls go on there without an attempt
// in vain, which would take 4 s: an attempt that the node refuses because it is not up yet costs nothing.
func TestTheOnlyMediaNodeComesBack(t *testing.T) {
	t.Parallel()
	needChromium(t, 2)
	c := startCluster(t, devcluster.Options{SFU: 1})
	people := joinAll(t, c.URL(), "only", nil, "Ada", "Alan")
	address, before := mediaOf(t, c, "sfu-1"), []callStats{people[0].mustStats(t), people[1].mustStats(t)}
	kill(t, c, "sfu-1")
	restart(t, c, "sfu-1")
	if again := mediaOf(t, c, "sfu-1"); again != address {
		t.Fatalf("it is back at %s, and was at %s", again, address)
	}
	for i, p := range people {
		after := p.awaitsMove(t, before[i], "restart")
		if m := after.Migrations[len(after.Migrations)-1]; m.Attempt > 1 && m.GapMs > 4000 {
			t.Errorf("%s: an attempt before was in vain: %+v", p.name, after.Migrations)
		}
	}
}
