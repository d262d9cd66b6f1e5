package e2e

import (
	"testing"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// The only media node dies and is started again at its address: its calls go on there, without an attempt in vain, which takes 4 s.
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
		p.awaitsMove(t, before[i], "restart")
		if after := p.mustStats(t); after.Migrations[len(after.Migrations)-1].GapMs > 4000 {
			t.Errorf("%s: %+v", p.name, after.Migrations)
		}
	}
}
