package orchestrator

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// 300 rooms are opened at once through three signaling nodes. No load report comes meanwhile, so each knows its own claims and what a
// node refused. No node passes its ceiling, or 1.25 times the cluster's load, even one of a tenth of the others' size.
func TestThreeHundredFirstJoins(t *testing.T) {
	const joins, rounds, bound = 300, 10, 1.25
	for name, sizes := range map[string][]uint64{"equal": {10, 10, 10}, "one of a tenth": {10, 10, 10, 1}} {
		t.Run(name, func(t *testing.T) {
			most := 0.0
			for round := range rounds {
				most = max(most, firstJoins(t, fmt.Sprintf("first-%d", round), joins, sizes))
			}
			t.Logf("at most %.3f of the mean", most)
			if most > bound {
				t.Errorf("a node has %.3f of the cluster's load, want at most %.2f", most, bound)
			}
		})
	}
}

// allAtOnce answers no claim before all are there: none is won while another one's node is chosen.
type allAtOnce struct {
	*testkit.MemoryStore
	missing atomic.Int64
	all     chan struct{}
}

func (s *allAtOnce) Claim(ctx context.Context, room ring.RoomID, p pin.Pin, why string) (pin.Pin, pin.Incarnation, error) {
	if s.missing.Add(-1) == 0 {
		close(s.all)
	}
	select {
	case <-ctx.Done():
		return pin.Pin{}, 0, ctx.Err()
	case <-s.all:
		return s.MemoryStore.Claim(ctx, room, p, why)
	}
}

// firstJoins returns the fullest node's share over the cluster's.
func firstJoins(t *testing.T, prefix string, joins int, sizes []uint64) float64 {
	t.Helper()
	var names []string
	for i := range sizes {
		names = append(names, fmt.Sprintf("sfu-%d", i+1))
	}
	view, ceilings := crowdView(3, names...), map[ring.NodeID]headroom.Egress{}
	for i, name := range names {
		node := view.Nodes[ring.NodeID(name)]
		ceilings[node.ID] = headroom.Egress{BitsPerSecond: 100_000_000, PacketsPerSecond: 20_000}.Times(sizes[i])
		node.Load.CeilingBitsPerSecond, node.Load.CeilingPacketsPerSecond = ceilings[node.ID].BitsPerSecond, ceilings[node.ID].PacketsPerSecond
		view.Nodes[node.ID] = node
	}
	store, loads := &allAtOnce{MemoryStore: testkit.NewMemoryStore(), all: make(chan struct{})}, map[ring.NodeID]headroom.Egress{}
	store.missing.Store(int64(joins))
	var signaling []*Orchestrator
	for range 3 {
		signaling = append(signaling, New(store, fixed(view), &addresses{}, patient(), quiet))
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range joins {
		all.Go(func() {
			by, room, expect := signaling[i%3], ring.RoomID(fmt.Sprintf("%s-%d", prefix, i)), headroom.Room{}
			p, err := by.Place(t.Context(), room, expect)
			for err == nil {
				mu.Lock()
				takes := headroom.Takes(loads[p.Node], expect.Cost(), ceilings[p.Node]) // the media node has the last word
				if takes {
					loads[p.Node] = loads[p.Node].Plus(expect.Cost())
				}
				mu.Unlock()
				if takes {
					by.Opened(room, p.Node, 2)
					return
				}
				p, err = by.PlaceAgain(t.Context(), room, p, expect)
			}
			t.Errorf("%s was refused: %v", room, err)
		})
	}
	all.Wait()
	var load, ceiling headroom.Egress
	most := 0.0
	for id, c := range ceilings {
		load, ceiling, most = load.Plus(loads[id]), ceiling.Plus(c), max(most, loads[id].Share(c))
		if !loads[id].Fits(c) {
			t.Errorf("%s sends %v, and may send %v", id, loads[id], c)
		}
	}
	return most / load.Share(ceiling)
}
