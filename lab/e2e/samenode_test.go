package e2e

import (
	"testing"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestTheOnlyMediaNodeComesBack kills the only media node and starts it again at the same address. Its calls go on there with
// the first restart that they try: an attempt in vain would cost them 4 s.
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
		if m := after.Migrations[len(after.Migrations)-1]; m.Attempt != 1 {
			t.Errorf("%s: attempt %d, want the first: %+v", p.name, m.Attempt, after.Migrations)
		}
	}
}
