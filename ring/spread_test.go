package ring

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// spreadOf returns max/mean and (max-min)/mean of the rooms per node.
func spreadOf(r *Ring, rooms []RoomID) (maxOverMean, spread float64) {
	counts := map[NodeID]int{}
	for _, room := range rooms {
		owner, _ := r.Owner(room)
		counts[owner]++
	}
	lo, hi := len(rooms), 0
	for _, node := range r.nodes {
		lo, hi = min(lo, counts[node]), max(hi, counts[node])
	}
	mean := float64(len(rooms)) / float64(r.Len())
	return float64(hi) / mean, float64(hi-lo) / mean
}

// TestSpreadOfUsualNames holds the stated bounds for the names that the dev
// cluster and the documents use.
func TestSpreadOfUsualNames(t *testing.T) {
	for _, c := range []struct {
		nodes int
		bound float64 // of max/mean
	}{{3, 1.25}, {10, 1.40}} {
		for _, rooms := range []int{1000, 10_000, 100_000} {
			maxOverMean, spread := spreadOf(New(named("sfu", c.nodes)), numbered(rooms))
			t.Logf("sfu-1..%d, %6d rooms: max/mean %.3f, (max-min)/mean %4.1f %%", c.nodes, rooms, maxOverMean, 100*spread)
			if maxOverMean > c.bound {
				t.Errorf("%d nodes, %d rooms: max/mean %.3f > %.2f", c.nodes, rooms, maxOverMean, c.bound)
			}
		}
	}
}

// percentile returns the p-th percentile of values, which it sorts.
func percentile(values []float64, p int) float64 {
	slices.Sort(values)
	return values[min(len(values)-1, len(values)*p/100)]
}

// TestSpreadOfRandomNames is what 160 points really give: the percentiles over
// many sets of random names, 1000 rooms each. Any one set may be worse, so no bound
// holds for all; the bounds here are the 95th percentiles with some room.
func TestSpreadOfRandomNames(t *testing.T) {
	const sets = 200
	rooms := numbered(1000)
	for _, c := range []struct {
		nodes                 int
		maxOverMean95         float64
		spread95              float64
		leastMoved, mostMoved float64 // shares when one node is added: 1/(n+1) +- 4 sigma
	}{
		{nodes: 3, maxOverMean95: 1.25, spread95: 0.42, leastMoved: 0.16, mostMoved: 0.34},
		{nodes: 10, maxOverMean95: 1.40, spread95: 0.66, leastMoved: 0.04, mostMoved: 0.15},
	} {
		for seed := range uint64(2) {
			random := rand.New(rand.NewPCG(seed, uint64(c.nodes)))
			var maxOverMean, spread, moved []float64
			for range sets {
				nodes := make([]NodeID, c.nodes+1)
				for i := range nodes {
					nodes[i] = NodeID(fmt.Sprintf("node-%016x", random.Uint64()))
				}
				r := New(nodes[:c.nodes])
				m, s := spreadOf(r, rooms)
				maxOverMean, spread = append(maxOverMean, m), append(spread, s)
				moved = append(moved, float64(len(Moves(r, New(nodes), rooms)))/float64(len(rooms)))
			}
			t.Logf("%2d nodes, %d sets, seed %d: max/mean p50 %.2f p95 %.2f max %.2f; (max-min)/mean p50 %.0f %% p95 %.0f %%; one more node moves p50 %.1f %% (%.1f-%.1f %%)",
				c.nodes, sets, seed, percentile(maxOverMean, 50), percentile(maxOverMean, 95), percentile(maxOverMean, 100),
				100*percentile(spread, 50), 100*percentile(spread, 95),
				100*percentile(moved, 50), 100*percentile(moved, 0), 100*percentile(moved, 100))
			if got := percentile(maxOverMean, 95); got > c.maxOverMean95 {
				t.Errorf("%d nodes: p95 of max/mean %.3f > %.2f", c.nodes, got, c.maxOverMean95)
			}
			if got := percentile(spread, 95); got > c.spread95 {
				t.Errorf("%d nodes: p95 of (max-min)/mean %.3f > %.2f", c.nodes, got, c.spread95)
			}
			if least, most := percentile(moved, 0), percentile(moved, 100); least < c.leastMoved || most > c.mostMoved {
				t.Errorf("%d nodes: one more moves %.3f to %.3f of the rooms, want %.2f to %.2f", c.nodes, least, most, c.leastMoved, c.mostMoved)
			}
		}
	}
}
