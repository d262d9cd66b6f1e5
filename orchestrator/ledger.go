package orchestrator

import (
	"iter"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	reservationLasts = 5 * time.Second
	// By then about two load reports of the node have come.
	refusalLasts = 2 * time.Second
	// Claims beyond this number are not counted.
	maxReservations = 4096
)

type reservation struct {
	node   ring.NodeID
	boot   pin.BootID
	fence  pin.Fence
	cost   headroom.Egress
	floor  headroom.Egress
	lapses time.Time
	// charged is the number of the first load report that includes the room, and 0 while that is unknown.
	charged uint64

	// planned is set by plan, until the move begins.
	planned bool
	// lowest is set if the room was placed by chooseLowest.
	lowest bool
	over   []passed
}

type lapse struct {
	room ring.RoomID
	at   time.Time
}

// ledger adds won claims to the load reports, so that a burst of rooms between two reports does not land on one node.
type ledger struct {
	clock   func() time.Time
	epsilon float64
	mu      sync.Mutex
	view    *cluster.View
	// base is the sum of the load reports, without reservations.
	base     totals
	reserved map[ring.RoomID]reservation
	sums     map[pin.BootID]headroom.Egress
	floors   map[pin.BootID]headroom.Egress
	total    headroom.Egress
	// claims has the egress of the claims under way, which are neither won nor lost yet. claimed is their sum.
	claims  map[pin.BootID]headroom.Egress
	claimed headroom.Egress
	order   []lapse
	refused map[pin.BootID]time.Time
}

type avoidance struct {
	// The node refused this room.
	node ring.NodeID
	boot pin.BootID
	// branches have people of the room, the one with the most first: people there need not move if it moves there.
	branches []pin.BootID
	// from is the node of the pin that is replaced. It does not stand by for itself, even as another process.
	from ring.NodeID
	// standby can go on with the room's connections. It is empty if no boot is known to.
	standby pin.BootID
}

// any reports whether some node is avoided.
func (a avoidance) any() bool { return a.node != "" || a.boot != "" }

func (l *ledger) choose(view *cluster.View, room ring.RoomID, need headroom.Egress, avoid avoidance) (cluster.Node, choice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.chosen(view, room, need, avoid)
}

// chosen returns the node for a room and how it was chosen. The caller holds mu.
func (l *ledger) chosen(view *cluster.View, room ring.RoomID, need headroom.Egress, avoid avoidance) (cluster.Node, choice) {
	l.catchUp(view)
	made := choose(l.walk(view, room, avoid), l.totals(), room, need)
	made.over = l.passedOver(view, room, avoid, need, made)
	return view.Nodes[made.node], made
}

// claim chooses a node for a new room. The room's egress counts for the bound until claimEnded, but does not use up
// the node's headroom, because most claims find that the room has a pin.
func (l *ledger) claim(view *cluster.View, room ring.RoomID, need headroom.Egress, avoid avoidance) (cluster.Node, choice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	node, made := l.chosen(view, room, need, avoid)
	if made.node != "" {
		if l.claims == nil {
			l.claims = make(map[pin.BootID]headroom.Egress)
		}
		l.claims[node.Boot] = l.claims[node.Boot].Plus(need)
		l.claimed = l.claimed.Plus(need)
	}
	return node, made
}

func (l *ledger) claimEnded(boot pin.BootID, need headroom.Egress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	less(l.claims, boot, need)
	l.claimed = l.claimed.Minus(need)
}

// reserve chooses a node for a room whose pin is to be replaced, and reserves its egress at once: the rooms of a dead
// node move together and must see each other's targets. If plan has chosen a node that still takes the room, reserve
// uses that node.
func (l *ledger) reserve(view *cluster.View, room ring.RoomID, expect headroom.Room, avoid avoidance, fence pin.Fence, lowest bool) (cluster.Node, choice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.catchUp(view)
	if r := l.reserved[room]; r.planned {
		if node, known := view.Nodes[r.node]; known && node.Boot == r.boot && l.barred(node, avoid) == "" {
			r.planned, r.fence = false, fence
			l.retain(room, r)
			return node, choice{node: r.node, asked: 1, lowest: r.lowest, over: r.over}
		}
	}
	return l.decide(view, room, expect, avoid, fence, lowest)
}

func (l *ledger) plan(view *cluster.View, room ring.RoomID, expect headroom.Room, avoid avoidance, lowest bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.catchUp(view)
	l.decide(view, room, expect, avoid, pin.Fence{}, lowest)
	if r, ok := l.reserved[room]; ok {
		r.planned = true
		l.reserved[room] = r
	}
}

// decide drops the room's reservation, chooses a node and reserves its egress there. The caller holds mu.
func (l *ledger) decide(view *cluster.View, room ring.RoomID, expect headroom.Room, avoid avoidance, fence pin.Fence, lowest bool) (cluster.Node, choice) {
	l.drop(room)
	need, floor := needOf(view, expect), expect.Floor()
	made := l.toBranch(view, avoid)
	if made.node == "" {
		made = l.toStandby(view, room, need, avoid)
	}
	if made.node == "" {
		made = choose(l.walk(view, room, avoid), l.totals(), room, need)
	}
	if made.node == "" && lowest {
		made.node = chooseLowest(l.walk(view, room, avoid), room, floor)
		made.lowest = made.node != ""
	}
	node := view.Nodes[made.node]
	if made.node != "" {
		made.over = l.passedOver(view, room, avoid, need, made)
		l.retain(room, reservation{node: node.ID, boot: node.Boot, fence: fence, cost: need, floor: floor, lowest: made.lowest, over: made.over})
	}
	return node, made
}

// toBranch chooses the first branch that may take rooms. It has most of the room's load already. The caller holds mu.
func (l *ledger) toBranch(view *cluster.View, avoid avoidance) choice {
	for _, boot := range avoid.branches {
		for _, node := range view.Nodes {
			if node.Boot == boot && l.barred(node, avoid) == "" {
				return choice{node: node.ID, asked: 1}
			}
		}
	}
	return choice{}
}

// toStandby chooses the node that stands by for the room, if it has headroom: the one that its owner told of, else as Standby has it. The bound does not count, because clients notice
// nothing of a move to that node. The caller holds mu.
func (l *ledger) toStandby(view *cluster.View, room ring.RoomID, need headroom.Egress, avoid avoidance) choice {
	if avoid.from == "" {
		return choice{}
	}
	made := choice{}
	for c := range l.walk(view, room, avoid) {
		node := view.Nodes[c.node]
		if c.barred != "" || !standsBy(node, avoid.from) || !headroom.Takes(c.load, need, c.ceiling) {
			continue
		}
		if made.node == "" || node.Boot == avoid.standby {
			made = choice{node: c.node, asked: 1}
		}
	}
	return made
}

// totals returns the load and the ceiling of the cluster with all reservations and claims. The caller holds mu.
func (l *ledger) totals() totals {
	sum := l.base
	sum.load, sum.epsilon = sum.load.Plus(l.total).Plus(l.claimed), l.epsilon
	return sum
}

// walk yields the nodes in the ring's order from the room's owner on. The caller holds mu.
func (l *ledger) walk(view *cluster.View, room ring.RoomID, avoid avoidance) iter.Seq[candidate] {
	return func(yield func(candidate) bool) {
		for id := range view.Ring.Successors(room) {
			node, known := view.Nodes[id]
			c := candidate{
				node: id, load: reported(node).Plus(l.sums[node.Boot]), claims: l.claims[node.Boot],
				floor: floorOf(node).Plus(l.floors[node.Boot]), ceiling: ceilingOf(node),
			}
			if !known {
				c.barred = barUnknown
			} else {
				c.barred = l.barred(node, avoid)
			}
			if !yield(c) {
				return
			}
		}
	}
}

// barred returns why a node may not take rooms, or the empty reason. The caller holds mu.
func (l *ledger) barred(node cluster.Node, avoid avoidance) bar {
	switch {
	case node.Boot == "" || node.Control == "":
		return barUnknown
	case node.Draining:
		return barDraining
	case node.ID == avoid.node:
		return barRefusedThis
	case node.Boot == avoid.boot:
		return barDead
	case l.clock().Before(l.refused[node.Boot]):
		return barRefusing
	default:
		return ""
	}
}

func (l *ledger) keep(room ring.RoomID, p pin.Pin, expect headroom.Room) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retain(room, reservation{node: p.Node, boot: p.Boot, fence: p.Fence, cost: expect.Cost(), floor: expect.Floor()})
}

func (l *ledger) retain(room ring.RoomID, r reservation) {
	l.drop(room)
	if len(l.order) >= 2*maxReservations || len(l.reserved) >= maxReservations {
		return
	}
	if l.reserved == nil {
		l.reserved = make(map[ring.RoomID]reservation)
		l.sums, l.floors = make(map[pin.BootID]headroom.Egress), make(map[pin.BootID]headroom.Egress)
	}
	r.lapses = l.clock().Add(reservationLasts)
	l.reserved[room] = r
	l.sums[r.boot] = l.sums[r.boot].Plus(r.cost)
	l.floors[r.boot] = l.floors[r.boot].Plus(r.floor)
	l.total = l.total.Plus(r.cost)
	l.order = append(l.order, lapse{room: room, at: r.lapses})
}

func (l *ledger) forget(room ring.RoomID, fence pin.Fence) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.reserved[room].fence == fence {
		l.drop(room)
	}
}

func (l *ledger) opened(room ring.RoomID, node ring.NodeID, charged uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, ok := l.reserved[room]; ok && r.node == node && r.charged == 0 {
		r.charged = max(charged, 1)
		l.retain(room, r)
		l.dropIfReported(room, l.reserved[room])
	}
}

func (l *ledger) refuse(room ring.RoomID, boot pin.BootID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused == nil {
		l.refused = make(map[pin.BootID]time.Time)
	}
	l.refused[boot] = l.clock().Add(refusalLasts)
	if l.reserved[room].boot == boot {
		l.drop(room)
	}
}

func (l *ledger) drop(room ring.RoomID) {
	r, ok := l.reserved[room]
	if !ok {
		return
	}
	delete(l.reserved, room)
	l.total = l.total.Minus(r.cost)
	less(l.sums, r.boot, r.cost)
	less(l.floors, r.boot, r.floor)
}

func less(sums map[pin.BootID]headroom.Egress, boot pin.BootID, by headroom.Egress) {
	if rest := sums[boot].Minus(by); rest == (headroom.Egress{}) {
		delete(sums, boot)
	} else {
		sums[boot] = rest
	}
}
