package relief

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/ring"
)

func sorted(sizes []int) []int {
	sizes = slices.Sorted(slices.Values(sizes))
	slices.Reverse(sizes)
	return sizes
}

// cluster has true loads; reports are a second old and wrong by a percent.
type cluster struct {
	ceilings map[ring.NodeID]headroom.Egress
	rooms    []Room
}

func (c *cluster) loads() map[ring.NodeID]headroom.Egress {
	out := map[ring.NodeID]headroom.Egress{}
	for _, room := range c.rooms {
		out[room.On] = out[room.On].Plus(room.Sends)
	}
	return out
}

func (c *cluster) hottest() (most float64) {
	for id, load := range c.loads() {
		most = max(most, load.Share(c.ceilings[id]))
	}
	return most
}

func drawCluster(t *rapid.T) *cluster {
	c := &cluster{ceilings: map[ring.NodeID]headroom.Egress{}}
	for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
		c.ceilings[ring.NodeID(fmt.Sprint("n", i))] = egress(rapid.SampledFrom([]int{100, 500, 1000}).Draw(t, "ceiling"))
	}
	ids := slices.Sorted(maps.Keys(c.ceilings))
	for i := range rapid.IntRange(0, 40).Draw(t, "rooms") {
		c.rooms = append(c.rooms, Room{ID: ring.RoomID(fmt.Sprint("r", i)), On: rapid.SampledFrom(ids).Draw(t, "on"), Sends: egress(rapid.IntRange(1, 120).Draw(t, "sends"))})
	}
	return c
}

// Over thousands of seconds with old and noisy reports: no node becomes hotter than the hottest was, the bound holds, no room moves
// again before its rest, and the moves end.
func TestManySteps(t *testing.T) {
	config := DefaultConfig()
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		r, now, seen := New(config), time.Unix(0, 0), c.loads()
		lasts := time.Duration(rapid.IntRange(1, 8).Draw(t, "a move's seconds")) * time.Second
		noise := rapid.SliceOfN(rapid.Uint64Range(990, 1010), 7, 13).Draw(t, "noise")
		ends, moves := map[ring.RoomID]time.Time{}, map[ring.RoomID]time.Time{}
		under, to, most := 0, map[ring.RoomID]ring.NodeID{}, c.hottest()
		for step := range 3000 {
			now = now.Add(time.Second)
			var nodes []Node
			for i, id := range slices.Sorted(maps.Keys(c.ceilings)) {
				load := seen[id]
				load.BitsPerSecond = load.BitsPerSecond / 1000 * noise[(step*7+i)%len(noise)]
				nodes = append(nodes, Node{ID: id, Open: true, Load: load, Ceiling: c.ceilings[id]})
			}
			seen = c.loads()
			for i, room := range c.rooms {
				if at, ok := ends[room.ID]; ok && !now.Before(at) {
					c.rooms[i].On = to[room.ID]
					delete(ends, room.ID)
					r.Ended(room.ID, now)
					under--
				}
			}
			if got := c.hottest(); got > most {
				t.Fatalf("second %d: a node is at %.3f, the hottest was at %.3f", step, got, most)
			}
			for _, m := range r.Next(now, nodes, slices.Clone(c.rooms)) {
				if last, ok := moves[m.Room]; ok && now.Sub(last) < config.Rest {
					t.Fatalf("%s moves again after %s", m.Room, now.Sub(last))
				}
				if step > 2500 {
					t.Fatalf("second %d: %+v: the moves do not end", step, m)
				}
				moves[m.Room], ends[m.Room], to[m.Room] = now, now.Add(lasts), m.To
				under++
			}
			if under > config.AtOnce {
				t.Fatalf("%d moves at once", under)
			}
		}
	})
}
