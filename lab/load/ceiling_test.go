package load

import (
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
)

// TestCeilings counts the longest time in a row above the ceiling, for each node.
func TestCeilings(t *testing.T) {
	c := ceilings{nodes: make(map[ring.NodeID]*NodeEgress)}
	for _, sent := range []uint64{90, 101, 110, 100, 150, 0} {
		c.count(map[ring.NodeID]uint64{"sfu-2": sent}, map[ring.NodeID]uint64{"sfu-1": 100, "sfu-2": 100}, egressInterval)
	}
	got := c.report()
	if len(got) != 2 || got[0].OverSeconds != 0 || got[1].OverSeconds != (2*egressInterval).Seconds() || got[1].MostBitsPerSecond != 150 {
		t.Errorf("%+v, want sfu-2 over its ceiling for %s", got, 2*egressInterval)
	}
	if got[1].longest < time.Second {
		t.Errorf("%s", got[1].longest)
	}
}
