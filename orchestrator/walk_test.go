package orchestrator

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/headroom"
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
			ceiling: headroom.Egress{BitsPerSecond: rapid.Uint64Range(1, 1000).Draw(t, "ceiling"), PacketsPerSecond: rapid.Uint64Range(1, 1000).Draw(t, "packet ceiling")},
			barred:  rapid.SampledFrom([]bar{"", "", "", barDead, barRefusing}).Draw(t, "barred"),
		}
		c.load = headroom.Egress{
			BitsPerSecond:    rapid.Uint64Range(0, c.ceiling.BitsPerSecond+10).Draw(t, "load"),
			PacketsPerSecond: rapid.Uint64Range(0, c.ceiling.PacketsPerSecond+10).Draw(t, "packet load"),
		}
		nodes = append(nodes, c)
		total.load, total.ceiling = total.load.Plus(c.load), total.ceiling.Plus(c.ceiling)
	}
	return nodes, total
}

func TestWalkKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, total := drawWalk(t)
		total.placers = rapid.IntRange(0, 20).Draw(t, "placers")
		need := headroom.Egress{BitsPerSecond: rapid.Uint64Range(0, 300).Draw(t, "need"), PacketsPerSecond: rapid.Uint64Range(0, 300).Draw(t, "packets")}
		room := ring.RoomID(rapid.SampledFrom([]string{"class", "chess", "radio"}).Draw(t, "room"))
		made := choose(slices.Values(nodes), total, room, need)
		if again := choose(slices.Values(nodes), total, room, need); !reflect.DeepEqual(again, made) {
			t.Fatalf("the same walk chose %v, then %v", made, again)
		}
		at := slices.IndexFunc(nodes, func(c candidate) bool { return c.node == made.node })
		limit := bound(total, need)
		takes := func(c candidate) bool { return c.barred == "" && headroom.Takes(c.load, need, c.ceiling) }
		fits := func(c candidate) bool { return c.barred == "" && c.load.Plus(need).Fits(c.ceiling) }
		below := func(c candidate) bool {
			return fits(c) && (c.load.Plus(need).Share(c.ceiling) <= limit || headroom.Idle(c.load, c.ceiling))
		}

		if made.node == "" {
			if slices.ContainsFunc(nodes, takes) {
				t.Fatal("nothing chosen although a node takes the room")
			}
			return
		}
		chosen := nodes[at]
		switch {
		case !takes(chosen):
			t.Fatalf("chose %+v, which is barred or above its ceiling", chosen)
		case !fits(chosen) && slices.ContainsFunc(nodes, fits):
			t.Fatalf("chose %+v for being idle although the room fits elsewhere", chosen)
		}
		owner := slices.IndexFunc(nodes, func(c candidate) bool { return c.barred == "" })
		if below(nodes[owner]) && at != owner {
			t.Fatalf("chose %+v although the first that may be asked takes the room: %+v", chosen, nodes[owner])
		}
	})
}

// A herd: each of twenty signaling nodes places a room by one view, in which one node has room for two and the others
// for one, above the bound. The draw gives each node what it can take, on average.
func TestHerdIsSpreadByHeadroom(t *testing.T) {
	const placers, views = 20, 200
	need := headroom.Expect(16).Cost()
	var nodes []candidate
	total := totals{placers: placers}
	for i := range 20 {
		c := candidate{node: ring.NodeID(fmt.Sprintf("n%d", i)), load: need.Times(28), ceiling: need.Times(40)}
		if i == 0 {
			c.load = need.Times(20)
		}
		nodes = append(nodes, c)
		total.load, total.ceiling = total.load.Plus(c.load), total.ceiling.Plus(c.ceiling)
	}
	need = need.Times(10) // a quarter of a node
	sum, most := 0, 0
	for v := range views {
		herd := 0
		for p := range placers {
			walk := append(slices.Clone(nodes[p:]), nodes[:p]...)
			if choose(slices.Values(walk), total, ring.RoomID(fmt.Sprintf("herd-%d-%d", v, p)), need).node == "n0" && p > 0 {
				herd++
			}
		}
		sum, most = sum+herd, max(most, herd)
	}
	const lots, all = 2.0, 2.0 + 19*1.2
	if mean, want := float64(sum)/views, (placers-1)*lots/all; mean > 1.25*want || mean < want/1.25 || most > 8 {
		t.Errorf("the node with room for two was given %.2f of 19 rooms on average, want %.2f, and %d at the most", mean, want, most)
	}
}

// Ten nodes are half filled, the ring giving every second room to one: no node exceeds (1+epsilon) times the mean by
// more than one room.
func TestWalkBoundsTheFullestNode(t *testing.T) {
	const rooms, size = 2000, 6
	view := viewOf(sfu("n0", 1), sfu("n1", 1), sfu("n2", 1), sfu("n3", 1), sfu("n4", 1), sfu("n5", 1), sfu("n6", 1), sfu("n7", 1), sfu("n8", 1), sfu("n9", 1))
	cost := headroom.Expect(size).Cost()
	load := make(map[ring.NodeID]headroom.Egress)
	ceiling := cost.Times(rooms / 10 * 2)
	var total totals
	total.ceiling = ceiling.Times(10)
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
		made := choose(walk, total, room, cost)
		load[made.node] = load[made.node].Plus(cost)
		total.load = total.load.Plus(cost)
	}
	fullest, mean, alone := 0.0, total.load.Share(total.ceiling), 0
	for id := range load {
		fullest, alone = max(fullest, load[id].Share(ceiling)), max(alone, byRing[id])
	}
	t.Logf("max/mean of %d rooms on 10 nodes: %.3f with the walk, %.3f by the ring alone", rooms, fullest/mean, float64(alone)*10/rooms)
	if limit := (1+defaultEpsilon)*mean + cost.Share(ceiling); fullest > limit {
		t.Errorf("the fullest node has %.3f of its ceiling, want at most %.3f", fullest, limit)
	}
}
