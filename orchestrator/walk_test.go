package orchestrator

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/ring"
)

// drawWalk draws some nodes in walk order.
func drawWalk(t *rapid.T) ([]candidate, totals) {
	n := rapid.IntRange(0, 8).Draw(t, "nodes")
	var nodes []candidate
	var total totals
	for i := range n {
		c := candidate{
			node:    ring.NodeID(rune('a' + i)),
			ceiling: Egress{rapid.Uint64Range(1, 1000).Draw(t, "ceiling"), rapid.Uint64Range(1, 1000).Draw(t, "packet ceiling")},
			barred:  rapid.SampledFrom([]bar{"", "", "", barDead, barRefusing}).Draw(t, "barred"),
		}
		c.load = Egress{
			rapid.Uint64Range(0, c.ceiling.BitsPerSecond+10).Draw(t, "load"),
			rapid.Uint64Range(0, c.ceiling.PacketsPerSecond+10).Draw(t, "packet load"),
		}
		nodes = append(nodes, c)
		total.load, total.ceiling = total.load.plus(c.load), total.ceiling.plus(c.ceiling)
	}
	return nodes, total
}

func TestWalkKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, total := drawWalk(t)
		need := Egress{rapid.Uint64Range(0, 300).Draw(t, "need"), rapid.Uint64Range(0, 300).Draw(t, "packets")}
		made := choose(slices.Values(nodes), total, need, 0.25)
		if again := choose(slices.Values(nodes), total, need, 0.25); again != made {
			t.Fatalf("the same walk chose %v, then %v", made, again)
		}
		at := slices.IndexFunc(nodes, func(c candidate) bool { return c.node == made.node })
		limit := bound(total, need, 0.25)
		fits := func(c candidate) bool { return c.barred == "" && c.load.plus(need).fits(c.ceiling) }
		below := func(c candidate) bool { return fits(c) && c.load.plus(need).share(c.ceiling) <= limit }
		nearlyIdle := func(c candidate) bool { return fits(c) && c.load.share(c.ceiling) < 0.10 }

		if made.node == "" {
			if slices.ContainsFunc(nodes, fits) {
				t.Fatal("nothing chosen although a node has headroom")
			}
			return
		}
		chosen := nodes[at]
		if !fits(chosen) {
			t.Fatalf("chose %+v, which is barred or above its ceiling", chosen)
		}
		if !below(chosen) && !nearlyIdle(chosen) && slices.ContainsFunc(nodes, below) {
			t.Fatalf("chose %+v above the bound %.3f although another node is below it", chosen, limit)
		}
		for _, passed := range nodes[:at] {
			if below(passed) {
				t.Fatalf("passed over %+v, which is within the bound %.3f", passed, limit)
			}
			if nearlyIdle(passed) {
				t.Fatalf("passed over %+v, which is nearly idle", passed)
			}
		}
	})
}

// Ten nodes filled to half with rooms of the same size, every second of which the ring gives to
// one node: no node exceeds (1+epsilon) times the mean by more than one room.
func TestWalkBoundsTheFullestNode(t *testing.T) {
	const rooms, size = 2000, 6
	view := viewOf(sfu("n0", 1), sfu("n1", 1), sfu("n2", 1), sfu("n3", 1), sfu("n4", 1), sfu("n5", 1), sfu("n6", 1), sfu("n7", 1), sfu("n8", 1), sfu("n9", 1))
	cfg := DefaultConfig()
	cost := cfg.Cost(size)
	load := make(map[ring.NodeID]Egress)
	ceiling := cost.times(rooms / 10 * 2)
	var total totals
	total.ceiling = ceiling.times(10)
	byRing := make(map[ring.NodeID]int)
	for i, placed := 0, 0; placed < rooms; i++ {
		room := ring.RoomID(fmt.Sprintf("room-%d", i))
		owner, _ := view.Ring.Owner(room)
		if placed%2 == 0 && owner != "n0" {
			continue
		}
		placed++
		byRing[owner]++
		walk := func(yield func(candidate) bool) {
			for id := range view.Ring.Successors(room) {
				if !yield(candidate{node: id, load: load[id], ceiling: ceiling}) {
					return
				}
			}
		}
		made := choose(walk, total, cost, cfg.Epsilon)
		load[made.node] = load[made.node].plus(cost)
		total.load = total.load.plus(cost)
	}
	fullest, mean, alone := 0.0, total.load.share(total.ceiling), 0
	for id := range load {
		fullest, alone = max(fullest, load[id].share(ceiling)), max(alone, byRing[id])
	}
	t.Logf("max/mean of %d rooms on 10 nodes: %.3f with the walk, %.3f by the ring alone", rooms, fullest/mean, float64(alone)*10/rooms)
	if limit := (1+cfg.Epsilon)*mean + cost.share(ceiling); fullest > limit {
		t.Errorf("the fullest node has %.3f of its ceiling, want at most %.3f", fullest, limit)
	}
}

func TestCost(t *testing.T) {
	cfg := DefaultConfig()
	for _, c := range []struct {
		size int
		want Egress
	}{
		{2, Egress{2*1_500_000 + 2*40_000, 2*160 + 2*50}},
		{4, Egress{3 * (4*1_500_000 + 3*40_000), 3 * (4*160 + 3*50)}},
		{100, Egress{99 * (9*1_500_000 + 3*40_000), 99 * (9*160 + 3*50)}}, // the slots bound what is sent
		{0, cfg.Cost(4)},
		{-7, cfg.Cost(4)},
		{1, cfg.Cost(2)},
		{1 << 40, cfg.Cost(maxExpectedSize)},
	} {
		if got := cfg.Cost(c.size); got != c.want {
			t.Errorf("a room of %d costs %v, want %v", c.size, got, c.want)
		}
	}
}

func TestConfigNamesEveryFault(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Errorf("the default configuration: %v", err)
	}
	if err := (Config{AudioSlots: -1}).Validate(); err == nil || len(err.(interface{ Unwrap() []error }).Unwrap()) != 6 {
		t.Errorf("an empty configuration has the faults %v, want all six", err)
	}
}
