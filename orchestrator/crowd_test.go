package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// crowd is media nodes with default ceilings that judge openings. Their reports never change.
type crowd struct {
	mu    sync.Mutex // guards the fields below
	loads map[ring.NodeID]headroom.Egress
	moves int // rooms that a node refused
}

// ceiling is that of sfu.DefaultConfig.
func ceiling() headroom.Egress {
	return headroom.Egress{BitsPerSecond: 800_000_000, PacketsPerSecond: 100_000}
}

// crowdView is what gossip says: so many signaling nodes, and the named media nodes with nothing on them.
func crowdView(placers int, media ...string) *cluster.View {
	var nodes []cluster.Node
	for _, id := range media {
		node := sfu(id, 1)
		node.Load.CeilingBitsPerSecond, node.Load.CeilingPacketsPerSecond = ceiling().BitsPerSecond, ceiling().PacketsPerSecond
		nodes = append(nodes, node)
	}
	for i := range placers {
		nodes = append(nodes, cluster.Node{ID: ring.NodeID(fmt.Sprintf("signaling-%d", i)), Boot: bootOf("signaling", i), Role: cluster.RoleSignaling})
	}
	return viewOf(nodes...)
}

// Every signaling node may place a room by the same view, so each is counted where package cluster has it.
func TestSignalingNodesAreCounted(t *testing.T) {
	if got := sum(crowdView(3, "a", "b")).placers; got != 3 {
		t.Fatalf("%d signaling nodes place rooms, want 3", got)
	}
}

// open opens the room where it was placed, placing it again where the node refuses.
func (c *crowd) open(ctx context.Context, signaling *Orchestrator, room ring.RoomID, p pin.Pin, expect headroom.Room) error {
	for range 10 {
		c.mu.Lock()
		takes := headroom.Takes(c.loads[p.Node], expect.Cost(), ceiling())
		if takes {
			c.loads[p.Node] = c.loads[p.Node].Plus(expect.Cost())
			c.mu.Unlock()
			signaling.Opened(room, p.Node, 2)
			return nil
		}
		c.moves++
		c.mu.Unlock()
		var err error
		if p, err = signaling.PlaceAgain(ctx, room, p, expect); err != nil {
			return err
		}
	}
	return errors.New("refused ten times")
}

// 250 rooms of unknown size are opened at once through three signaling nodes on three idle nodes: nobody is refused.
func TestAFullHourIsRefusedNobody(t *testing.T) {
	store, view := testkit.NewMemoryStore(), fixed(crowdView(3, "a", "b", "c"))
	c := &crowd{loads: map[ring.NodeID]headroom.Egress{}}
	var signalingNodes []*Orchestrator
	for range 3 {
		signalingNodes = append(signalingNodes, New(store, view, &addresses{}, patient(), quiet))
	}
	var all sync.WaitGroup
	for i := range 250 {
		all.Go(func() {
			signaling, room := signalingNodes[i%3], ring.RoomID(fmt.Sprintf("hour-%d", i))
			p, err := signaling.Place(t.Context(), room, headroom.Room{})
			if err == nil {
				err = c.open(t.Context(), signaling, room, p, headroom.Room{})
			}
			if err != nil {
				t.Errorf("%s: %v", room, err)
			}
		})
	}
	all.Wait()
	t.Logf("loads %v, %d refusals", c.loads, c.moves)
}

// A node dies with rooms of all sizes. All are moved to the two others at once, none of which refuses one.
func TestEveryRoomOfADeadNodeIsTakenAtOnce(t *testing.T) {
	for name, rooms := range map[string][]headroom.Room{
		"tens": append(manyOf(40, headroom.Room{People: 10, Microphones: 10}), manyOf(26, headroom.Expect(10))...),
		"64":   {{People: 64, Microphones: 64, Cameras: 4}},
		"120":  {{People: 120, Microphones: 120, Cameras: 4}},
		"250":  {{People: 250, Microphones: 250, Cameras: 4}},
		// The owner's measurement counts, and not what people have on.
		"measured": manyOf(300, headroom.Room{People: 10, Cameras: 10, Microphones: 10, Measured: true, Sent: headroom.Egress{BitsPerSecond: 4_000_000, PacketsPerSecond: 500}}),
		// Nothing is known but that it is larger than any ceiling.
		"a thousand": {headroom.Expect(1000)},
	} {
		t.Run(name, func(t *testing.T) {
			store, view := testkit.NewMemoryStore(), fixed(crowdView(2, "b", "c"))
			c := &crowd{loads: map[ring.NodeID]headroom.Egress{}}
			signaling := New(store, view, &addresses{}, patient(), quiet)
			for i, expect := range rooms {
				room, dead := ring.RoomID(fmt.Sprintf("%s-%d", name, i)), pinAt("a", 1, 5000, uint64(i+1))
				store.Put(room, dead.Encode())
				p, err := signaling.Rehome(t.Context(), room, dead, expect)
				if err == nil {
					err = c.open(t.Context(), signaling, room, p, expect)
				}
				if err != nil {
					t.Fatalf("room %d, %+v: %v", i, expect, err)
				}
			}
			if c.moves > 0 {
				t.Errorf("%d rooms were refused by the node that was chosen", c.moves)
			}
		})
	}
}

// The rooms of a dead node are moved at once, and the store answers when each has a target. They fill both others exactly.
func TestRoomsThatMoveAtOnceDoNotHerd(t *testing.T) {
	const rooms = 16
	big := headroom.Room{People: 20, Measured: true, Sent: headroom.Egress{BitsPerSecond: 2 * ceiling().BitsPerSecond / rooms, PacketsPerSecond: 2 * ceiling().PacketsPerSecond / rooms}}
	for name, move := range map[string]func(*Orchestrator, ring.RoomID, pin.Pin) (pin.Pin, error){
		"death": func(o *Orchestrator, room ring.RoomID, from pin.Pin) (pin.Pin, error) {
			return o.Rehome(t.Context(), room, from, big)
		},
		"drain": func(o *Orchestrator, room ring.RoomID, from pin.Pin) (pin.Pin, error) {
			return o.Move(t.Context(), room, from, "", big, pin.WhyDrain)
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := testkit.NewMemoryStore()
			signaling := New(store, fixed(crowdView(1, "b", "c")), &addresses{}, patient(), quiet)
			arrived, goOn := make(chan struct{}, rooms), make(chan struct{})
			store.Meanwhile(func() {
				arrived <- struct{}{}
				<-goOn
			})
			var all sync.WaitGroup
			var mu sync.Mutex
			on := make(map[ring.NodeID]int)
			for i := range rooms {
				room, from := ring.RoomID(fmt.Sprintf("herd-%d", i)), pinAt("a", 1, 5000, uint64(i+1))
				store.Put(room, from.Encode())
				all.Go(func() {
					p, err := move(signaling, room, from)
					if err != nil {
						t.Errorf("%s: %v", room, err)
					}
					mu.Lock()
					on[p.Node]++
					mu.Unlock()
				})
			}
			for range rooms {
				<-arrived
			}
			close(goOn)
			all.Wait()
			if on["b"] != rooms/2 || on["c"] != rooms/2 {
				t.Errorf("the rooms went to %v, and %d fit on each", on, rooms/2)
			}
		})
	}
}

// Another caller's compare-and-set wins: nothing stays reserved for the pin that was not written. After a death what stands is reserved,
// for no report shows it yet.
func TestALostMoveReservesWhatStands(t *testing.T) {
	store := testkit.NewMemoryStore()
	signaling := New(store, fixed(crowdView(1, "b", "c")), &addresses{}, patient(), quiet)
	dead, won := pinAt("a", 1, 5000, 1), pinAt("b", 1, 5001, 2)
	store.Put("lost", won.Encode())
	if p, err := signaling.Rehome(t.Context(), "lost", dead, headroom.Expect(10)); p != won || err != nil {
		t.Fatalf("Rehome = %v, %v, want the pin that stands", p, err)
	}
	if held := signaling.ledger.reserved["lost"]; held.fence != won.Fence || held.node != won.Node || len(signaling.ledger.reserved) != 1 {
		t.Errorf("%+v is reserved, want it for the pin that stands", signaling.ledger.reserved)
	}
	if p, err := signaling.Move(t.Context(), "lost", dead, "", headroom.Expect(10), pin.WhyDrain); p != won || err != nil {
		t.Fatalf("Move = %v, %v, want the pin that stands", p, err)
	}
	if len(signaling.ledger.reserved) != 0 {
		t.Errorf("%+v is reserved", signaling.ledger.reserved)
	}
}

// Six rooms of a dead node are known to two signaling nodes, and both move all of them at once, each in an order of its own. The two
// survivors have a room already, and a ceiling for six. Both signaling nodes plan the same, and no survivor gets more than four.
func TestSignalingNodesPlanADeathAlike(t *testing.T) {
	each := headroom.Egress{BitsPerSecond: 1_430_000, PacketsPerSecond: 730}
	view := crowdView(2, "b", "c")
	for id, node := range view.Nodes {
		node.Load.CeilingBitsPerSecond, node.Load.CeilingPacketsPerSecond = 8_800_000, 100_000
		node.Load.EgressBitsPerSecond, node.Load.EgressPacketsPerSecond = each.BitsPerSecond, each.PacketsPerSecond
		view.Nodes[id] = node
	}
	expect := headroom.Room{People: 4, Cameras: 4, Microphones: 4, Measured: true, Sent: each, Running: true}
	const deaths, rooms = 100, 6
	for death := range deaths {
		synctest.Test(t, func(t *testing.T) {
			store, dice := testkit.NewMemoryStore(), rand.New(rand.NewPCG(uint64(death), 3)) //nolint:gosec // a test
			var mu sync.Mutex
			store.Meanwhile(func() {
				mu.Lock()
				trip := time.Duration(dice.IntN(2000)) * time.Microsecond
				mu.Unlock()
				<-time.After(trip) // of the virtual clock
			})
			name := func(i int) (ring.RoomID, pin.Pin) {
				return ring.RoomID(fmt.Sprintf("death-%d-%d", death, i)), pinAt("a", 1, 5000, uint64(i+1))
			}
			for i := range rooms {
				room, from := name(i)
				store.Put(room, from.Encode())
			}
			var all sync.WaitGroup
			var on [2]map[ring.NodeID]int
			for s := range on {
				signaling := New(store, fixed(view), &addresses{}, patient(), quiet)
				on[s] = map[ring.NodeID]int{}
				var planned [rooms]ring.NodeID
				for i := range rooms {
					room, from := name(i)
					signaling.Plan(room, from, expect)
					planned[i] = signaling.ledger.reserved[room].node
				}
				mu.Lock()
				order := dice.Perm(rooms)
				mu.Unlock()
				for _, i := range order {
					room, from := name(i)
					all.Go(func() {
						p, err := signaling.Rehome(t.Context(), room, from, expect)
						if err != nil || p.Node != planned[i] {
							t.Errorf("%s went to %s, %v; signaling node %d had planned %s", room, p.Node, err, s+1, planned[i])
						}
						mu.Lock()
						on[s][p.Node]++
						mu.Unlock()
					})
				}
			}
			all.Wait()
			if on[0]["b"] > 4 || on[0]["c"] > 4 || on[0]["b"] != on[1]["b"] {
				t.Errorf("death %d: the rooms went to %v, by the other to %v", death, on[0], on[1])
			}
		})
	}
}

func manyOf(n int, room headroom.Room) []headroom.Room {
	var list []headroom.Room
	for range n {
		list = append(list, room)
	}
	return list
}

// 200 people come back to pinned rooms while the store is slow: their claims keep no new room out.
func TestClaimsUnderWayReserveNothing(t *testing.T) {
	const resumes = 200
	store := testkit.NewMemoryStore()
	busy := crowdView(1, "a", "b", "c")
	for id, node := range busy.Nodes {
		node.Load.EgressBitsPerSecond, node.Load.EgressPacketsPerSecond = ceiling().Part(0.37).BitsPerSecond, ceiling().Part(0.37).PacketsPerSecond
		busy.Nodes[id] = node
	}
	signaling := New(store, fixed(busy), &addresses{}, patient(), quiet)
	arrived, goOn := make(chan struct{}, resumes), make(chan struct{})
	store.Meanwhile(func() {
		arrived <- struct{}{}
		<-goOn
	})
	var all sync.WaitGroup
	for i := range resumes {
		room := ring.RoomID(fmt.Sprintf("old-%d", i))
		store.Put(room, pinAt("a", 1, 5000, uint64(i+1)).Encode())
		all.Go(func() {
			if _, err := signaling.Place(t.Context(), room, headroom.Expect(10)); err != nil {
				t.Error(err)
			}
		})
	}
	for range resumes {
		<-arrived
	}
	store.Meanwhile(nil)
	p, err := signaling.Place(t.Context(), "new", headroom.Expect(10))
	if owner, _ := busy.Ring.Owner("new"); err != nil || p.Node != owner {
		t.Errorf("a new room among %d joins of others: %v, %v, want the ring's owner %s", resumes, p.Node, err, owner)
	}
	close(goOn)
	all.Wait()
	if len(signaling.ledger.reserved) != 1 {
		t.Errorf("%d rooms are reserved for, want the new one", len(signaling.ledger.reserved))
	}
}

// Two nodes are nearly full, most of it pictures that may become smaller. A room in which people are goes there all the same, one
// that begins does not, and neither does one that only drains. Reservations end it where even the lowest layers do not fit.
func TestARunningRoomIsTakenForItsLowestLayers(t *testing.T) {
	view := crowdView(1, "b", "c")
	for id, node := range view.Nodes {
		node.Load.EgressBitsPerSecond, node.Load.EgressPacketsPerSecond = 790_000_000, 80_000
		node.Load.FloorBitsPerSecond, node.Load.FloorPacketsPerSecond = 300_000_000, 60_000
		view.Nodes[id] = node
	}
	store := testkit.NewMemoryStore()
	recorder, facts := testkit.Recorded(t)
	cfg := patient()
	cfg.Events = recorder
	signaling := New(store, fixed(view), &addresses{}, cfg, quiet)
	running := headroom.Expect(50)
	running.Running, running.Measured, running.Sent = true, true, headroom.Egress{BitsPerSecond: 100_000_000, PacketsPerSecond: 12_000}
	fresh := running
	fresh.Running = false
	noHeadroom := new(NoHeadroomError)
	stays := pinAt("b", 1, 5000, 1)
	store.Put("stays", stays.Encode())
	if p, err := signaling.Place(t.Context(), "stays", fresh); err != nil || p != stays || len(facts()) != 0 {
		t.Errorf("a room with a pin: %v (%v), recorded %v", p, err, facts())
	}
	if _, err := signaling.Place(t.Context(), "new", fresh); !errors.As(err, &noHeadroom) {
		t.Errorf("a new room: %v", err)
	}
	if got := facts(); len(got) != 1 || got[0].Kind != events.LimitReached || got[0].Sentence() != "the cluster reached a limit ("+noHeadroom.Error()+")" {
		t.Errorf("recorded: %+v", got)
	}
	drains := pinAt("a", 1, 5000, 1)
	store.Put("drains", drains.Encode())
	if _, err := signaling.Move(t.Context(), "drains", drains, "", running, pin.WhyDrain); !errors.As(err, &noHeadroom) {
		t.Errorf("a room of a node that drains: %v", err)
	}
	on := map[ring.NodeID]int{}
	for i := range 20 {
		room, dead := ring.RoomID(fmt.Sprintf("runs-%d", i)), pinAt("a", 1, 5000, uint64(i+2))
		store.Put(room, dead.Encode())
		p, err := signaling.Rehome(t.Context(), room, dead, running)
		if err != nil {
			if !errors.As(err, &noHeadroom) {
				t.Fatal(err)
			}
			break
		}
		if on[p.Node]++; i == 0 {
			if changes, err := store.History(t.Context(), room); err != nil || len(changes) == 0 || !strings.Contains(changes[0].Why, "lowest layers") {
				t.Errorf("the room's history says %v, %v", changes, err)
			}
		}
	}
	fits := int(min(500_000_000/running.Floor().BitsPerSecond, 40_000/running.Floor().PacketsPerSecond))
	if on["b"] != fits || on["c"] != fits {
		t.Errorf("the rooms went to %v, and the lowest layers of %d fit on each", on, fits)
	}
}
