package orchestrator

import (
	"cmp"
	"iter"
	"math"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/ring"
)

type candidate struct {
	node ring.NodeID
	// load includes reservations.
	load headroom.Egress
	// claims are under way. They count for the bound only.
	claims headroom.Egress
	// floor is the egress with all rooms at their lowest layers.
	floor headroom.Egress
	// ceiling is never zero: a node without a report has an assumed one.
	ceiling headroom.Egress
	barred  bar
}

type bar string

const (
	barUnknown     bar = "its address is not known"
	barDraining    bar = "it is draining"
	barDead        bar = "its process is dead"
	barRefusedThis bar = "it refused this room"
	barRefusing    bar = "it refused a room a moment ago"
)

type totals struct {
	// load includes reservations and claims.
	load    headroom.Egress
	ceiling headroom.Egress
	// placers counts the signaling nodes, each of which may place a room by this same view.
	placers int
	epsilon float64
}

type fit string

const (
	within    fit = "within the bound"
	idle      fit = "nearly idle"
	above     fit = "above the bound"
	oversized fit = "nearly idle, and the room is larger than its headroom"
	full      fit = "no headroom"
	barred    fit = "barred"
)

// The busiest node of a ring has 1.25 to 1.40 times the mean, so with this value most rooms stay with their owner.
const defaultEpsilon = 0.25

func bound(total totals, need headroom.Egress) float64 {
	return (1 + cmp.Or(total.epsilon, defaultEpsilon)) * total.load.Plus(need).Share(total.ceiling)
}

// fitOf returns how well a node can take the room. A nearly idle node has no bound, because in an empty cluster the
// owner of the first room would always exceed it.
func fitOf(c candidate, need headroom.Egress, limit float64) fit {
	switch with := c.load.Plus(need); {
	case c.barred != "":
		return barred
	case !headroom.Takes(c.load, need, c.ceiling):
		return full
	case !with.Fits(c.ceiling):
		return oversized
	case with.Plus(c.claims).Share(c.ceiling) <= limit:
		return within
	case headroom.Idle(c.load.Plus(c.claims), c.ceiling):
		return idle
	default:
		return above
	}
}

type choice struct {
	// node is empty if no node takes the room.
	node ring.NodeID
	// asked counts the nodes that are not barred.
	asked   int
	refused int
	// best is the largest free egress of a node.
	best headroom.Egress
	// lowest is set by chooseLowest.
	lowest bool
	over   []passed
}

type draw struct {
	node ring.NodeID
	best float64
	// lots is the sum of all nodes' lots.
	lots float64
}

// luck returns a random number of a node and a room that is the same for all callers.
func luck(node ring.NodeID, room ring.RoomID) float64 {
	// u is between 0 and 1, both excluded.
	u := (float64(ring.Weight(node, string(room))>>11) + 0.5) / (1 << 53)
	return -1 / math.Log(u)
}

// enter gives a node its chance in a draw: weighted rendezvous hashing.
func (d *draw) enter(node ring.NodeID, luck, lots float64) {
	if score := lots * luck; d.node == "" || score > d.best {
		d.node, d.best = node, score
	}
	d.lots += lots
}

// choose takes the first node that is not barred, if it is within the bound or nearly idle. Otherwise it draws a
// node. A node's weight is how many such rooms it takes below the bound. If all nodes together take fewer rooms below
// the bound than there are placers, the weight is how many a node takes below its ceiling: otherwise all placers
// would choose the same few nodes.
func choose(walk iter.Seq[candidate], total totals, room ring.RoomID, need headroom.Egress) choice {
	var (
		out                              choice
		belowBound, belowCeiling, onIdle draw
		limit                            = bound(total, need)
	)
	for c := range walk {
		v := fitOf(c, need, limit)
		if v == barred {
			if c.barred == barRefusedThis || c.barred == barRefusing {
				out.refused++
			}
			continue
		}
		if out.asked++; out.asked == 1 && (v == within || v == idle) {
			return choice{node: c.node}
		}
		// best is for the error, in case no node takes the room.
		free := c.ceiling.Minus(c.load)
		if out.asked == 1 || free.BitsPerSecond > out.best.BitsPerSecond {
			out.best = free
		}
		load := c.load.Plus(c.claims)
		switch v {
		case within, idle:
			line := c.ceiling.Part(min(max(limit, load.Plus(need).Share(c.ceiling)), 1))
			lucky := luck(c.node, room)
			belowBound.enter(c.node, lucky, need.Into(line.Minus(load)))
			belowCeiling.enter(c.node, lucky, need.Into(c.ceiling.Minus(load)))
		case above:
			belowCeiling.enter(c.node, luck(c.node, room), need.Into(c.ceiling.Minus(load)))
		case oversized:
			onIdle.enter(c.node, luck(c.node, room), need.Into(c.ceiling))
		// A full node has no chance in the draw.
		case full, barred:
		}
	}
	out.node = cmp.Or(belowCeiling.node, onIdle.node)
	if belowBound.lots >= float64(max(total.placers, 1)) {
		out.node = belowBound.node
	}
	return out
}

// chooseLowest draws a node for a running room for which no node has headroom. The node has enough for the lowest
// layers of all its rooms, so its other rooms lose layers.
func chooseLowest(walk iter.Seq[candidate], room ring.RoomID, floor headroom.Egress) ring.NodeID {
	var drawn draw
	for c := range walk {
		if c.barred == "" && c.floor.Plus(floor).Fits(c.ceiling) {
			drawn.enter(c.node, luck(c.node, room), floor.Into(c.ceiling.Minus(c.floor)))
		}
	}
	return drawn.node
}
