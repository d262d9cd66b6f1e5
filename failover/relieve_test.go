package failover

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// warmCluster is media nodes of 100 Mbit/s with rooms of measured size, and signaling nodes that all have people of each room.
// A load report shows a move after a second.
type warmCluster struct {
	mu    sync.Mutex
	pins  map[ring.RoomID]pin.Pin
	sends map[ring.RoomID]uint64 // bits per second
	view  *cluster.View
	moved []string
	whys  map[string]bool
	most  int // moves at the same time
	now   int
}

func warm(t *testing.T, rooms map[ring.NodeID][]uint64) *warmCluster {
	t.Helper()
	c := &warmCluster{pins: map[ring.RoomID]pin.Pin{}, sends: map[ring.RoomID]uint64{}, whys: map[string]bool{}}
	c.view = &cluster.View{Settled: true, Nodes: map[ring.NodeID]cluster.Node{}, Gone: map[pin.BootID]cluster.Departure{}, Signaling: map[ring.NodeID]cluster.Node{}}
	for id, sizes := range rooms {
		c.view.Nodes[id] = cluster.Node{ID: id, Boot: pin.BootID("1-" + id), Role: cluster.RoleSFU, Control: string(id)}
		for i, size := range sizes {
			room := ring.RoomID(fmt.Sprintf("%s-%d", id, i))
			c.pins[room] = pin.Pin{Fence: pin.Fence{Epoch: 1}, Node: id, Boot: pin.BootID("1-" + id), Control: string(id)}
			c.sends[room] = size * 1e6
		}
	}
	c.report()
	return c
}

// report makes a new view: what was handed out is not touched.
func (c *warmCluster) report() {
	next := *c.view
	next.Nodes = maps.Clone(c.view.Nodes)
	for id, n := range next.Nodes {
		n.Load = cluster.Load{CeilingBitsPerSecond: 100e6, CeilingPacketsPerSecond: 1e6}
		for room, p := range c.pins {
			if p.Node == id {
				n.Load.EgressBitsPerSecond += c.sends[room]
				n.Load.EgressPacketsPerSecond++
			}
		}
		next.Nodes[id] = n
	}
	c.view = &next
}

func (c *warmCluster) share(id ring.NodeID) uint64 {
	return c.view.Nodes[id].Load.EgressBitsPerSecond / 1e6
}

// reliever is one signaling node's failover, with what relief needs.
type reliever struct {
	Membership
	Rooms
	Nodes
	*warmCluster

	self ring.NodeID
}

func (r reliever) View() *cluster.View {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.view
}

func (r reliever) PinnedTo(boot pin.BootID) (out []LocalRoom) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for room, p := range r.pins {
		if p.Boot == boot {
			out = append(out, LocalRoom{Room: room, Pin: p, Peers: 3, Expect: headroom.Room{
				People: 5, Measured: true, Sent: headroom.Egress{BitsPerSecond: r.sends[room], PacketsPerSecond: 1},
			}})
		}
	}
	return out
}

func (r reliever) Plan(ring.RoomID, pin.Pin, headroom.Room) {}

func (r reliever) Rehome(context.Context, ring.RoomID, pin.Pin, headroom.Room) (pin.Pin, error) {
	panic("relief moves only what lives")
}

func (r reliever) Move(_ context.Context, room ring.RoomID, from pin.Pin, to ring.NodeID, _ headroom.Room, why string) (pin.Pin, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pins[room] != from {
		return r.pins[room], nil
	}
	next := pin.Pin{Fence: pin.Fence{Epoch: from.Fence.Epoch + 1}, Node: to, Boot: pin.BootID("1-" + to), Control: string(to)}
	r.pins[room] = next
	r.moved = append(r.moved, fmt.Sprintf("%s to %s by %s", room, to, r.self))
	r.whys[why] = true
	r.now++
	r.most = max(r.most, r.now)
	return next, nil
}

func (r reliever) Outrank(context.Context, string, ring.RoomID, pin.Pin, bool) (bool, error) {
	return true, nil
}

func (r reliever) MovedLive(context.Context, ring.RoomID, pin.Pin) {
	<-time.After(2 * time.Second)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now--
}

func (r reliever) Settled(ring.RoomID, pin.Fence) bool { return true }

// live lets signaling nodes run for a time.
func (c *warmCluster) live(t *testing.T, lasts time.Duration, configs map[ring.NodeID]Config) {
	t.Helper()
	var all sync.WaitGroup
	defer all.Wait()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	for id := range configs {
		c.view.Signaling[id] = cluster.Node{ID: id, Role: cluster.RoleSignaling}
	}
	for id, config := range configs {
		config.Self = id
		r := reliever{warmCluster: c, self: id}
		f := New(config, r, r, r, nil, r, slog.New(slog.DiscardHandler))
		all.Go(func() {
			for range time.Tick(time.Second) {
				if ctx.Err() != nil {
					return
				}
				f.relieve(ctx, &all, r.View())
			}
		})
	}
	for range int(lasts / time.Second) {
		<-time.After(time.Second)
		c.mu.Lock()
		c.report()
		c.mu.Unlock()
	}
}

func two() map[ring.NodeID]Config {
	return map[ring.NodeID]Config{"signaling-1": DefaultConfig(), "signaling-2": DefaultConfig()}
}

func TestAHotNodeIsRelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := warm(t, map[ring.NodeID][]uint64{"a": {30, 25, 20, 10, 8}, "b": {20, 20}, "c": {25, 20}}) // 93, 40 and 45 %
		c.live(t, 10*time.Minute, two())
		if a := c.share("a"); a > 75 {
			t.Errorf("the hot node is at %d %%, want 75 at most", a)
		}
		if len(c.moved) != 1 || c.share("b") > 75 || c.share("c") > 75 {
			t.Errorf("moved %q, the others are at %d and %d %%: one room would have done", c.moved, c.share("b"), c.share("c"))
		}
		for why := range c.whys {
			if !strings.HasPrefix(why, "relief: it was above 85 %") {
				t.Errorf("the reason is %q", why)
			}
		}
	})
}

// The standby takes the room, although another node is cooler.
func TestReliefPrefersTheStandby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := warm(t, map[ring.NodeID][]uint64{"a": {30, 25, 20, 10, 8}, "b": {20, 20}, "c": {25, 20}})
		configs := two()
		for id, config := range configs {
			config.Standby = func(_ ring.RoomID, owner ring.NodeID, _ headroom.Egress) ring.NodeID {
				if owner == "a" {
					return "c"
				}
				return ""
			}
			configs[id] = config
		}
		c.live(t, 10*time.Minute, configs)
		if len(c.moved) != 1 || !strings.Contains(c.moved[0], " to c by ") {
			t.Errorf("moved %q, want one room to c", c.moved)
		}
	})
}

// A node is added to two that are at 80 %. Rooms go over gently, and then all is quiet.
func TestAnAddedNodeGetsRooms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tens := []uint64{10, 10, 10, 10, 10, 10, 10, 10}
		c := warm(t, map[ring.NodeID][]uint64{"a": tens, "b": tens, "c": {}})
		c.live(t, 15*time.Minute, two())
		if c.share("c") < 20 || c.most > 2 {
			t.Errorf("the new node is at %d %%, %d rooms moved at a time: %q", c.share("c"), c.most, c.moved)
		}
		before := len(c.moved)
		t.Log(c.moved, c.share("a"), c.share("b"), c.share("c"))
		c.live(t, 30*time.Minute, two())
		if len(c.moved) != before {
			t.Errorf("rooms go on moving: %q", c.moved[before:])
		}
		for _, m := range c.moved {
			if !strings.Contains(m, " to c ") {
				t.Errorf("%s, want all to the new node", m)
			}
		}
	})
}

func TestNoReliefWhereNoneMayBe(t *testing.T) {
	off := DefaultConfig()
	off.NoRelief = true
	for name, spoil := range map[string]func(*warmCluster) map[ring.NodeID]Config{
		"--no-relief": func(*warmCluster) map[ring.NodeID]Config { return map[ring.NodeID]Config{"signaling-1": off} },
		"a drain": func(c *warmCluster) map[ring.NodeID]Config {
			n := c.view.Nodes["c"]
			n.Draining = true
			c.view.Nodes["c"] = n
			return two()
		},
		"nowhere cooler": func(c *warmCluster) map[ring.NodeID]Config {
			for room := range c.sends {
				c.sends[room] *= 2
			}
			return two()
		},
		"nobody is heard": func(c *warmCluster) map[ring.NodeID]Config {
			for _, id := range []ring.NodeID{"b", "c"} {
				n := c.view.Nodes[id]
				n.Unreachable = true
				c.view.Nodes[id] = n
			}
			return two()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := warm(t, map[ring.NodeID][]uint64{"a": {47, 46}, "b": {40}, "c": {45}})
				configs := spoil(c)
				c.report()
				c.live(t, 5*time.Minute, configs)
				if len(c.moved) > 0 {
					t.Errorf("rooms moved: %q", c.moved)
				}
			})
		})
	}
}
