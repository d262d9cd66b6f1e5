package orchestrator

import (
	"cmp"
	"iter"
	"math"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/ring"
)

type candidate struct {
	node    ring.NodeID
	load    headroom.Egress // with reservations
	claims  headroom.Egress // under way: they count for the bound only
	floor   headroom.Egress // at the lowest layers
	ceiling headroom.Egress // never zero
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
	load    headroom.Egress // with claims
	ceiling headroom.Egress
	placers int // signaling nodes, which may all place a room by this view
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

// The ring's max/mean is 1.25 to 1.40: most rooms stay with their owner.
const defaultEpsilon = 0.25

func bound(total totals, need headroom.Egress) float64 {
	return (1 + cmp.Or(total.epsilon, defaultEpsilon)) * total.load.Plus(need).Share(total.ceiling)
}

// Idle nodes have no bound: the owner of the first rooms would exceed it.
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
	node    ring.NodeID // empty: none
	asked   int         // not barred
	refused int
	best    headroom.Egress // most free egress
	lowest  bool            // by chooseLowest
	over    []passed
}

type draw struct {
	node ring.NodeID
	best float64
	lots float64 // of all
}

// luck is the same for all callers.
func luck(node ring.NodeID, room ring.RoomID) float64 {
	u := (float64(ring.Weight(node, string(room))>>11) + 0.5) / (1 << 53) // in (0, 1)
	return -1 / math.Log(u)
}

// Weighted rendezvous.
func (d *draw) enter(node ring.NodeID, luck, lots float64) {
	if score := lots * luck; d.node == "" || score > d.best {
		d.node, d.best = node, score
	}
	d.lots += lots
}

// choose takes the first node not barred if it is within the bound or idle. Else it draws by how many such rooms a
// node takes below the bound; below its ceiling, if the lots below the bound are fewer than placers.
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
		case full, barred:
		}
	}
	out.node = cmp.Or(belowCeiling.node, onIdle.node)
	if belowBound.lots >= float64(max(total.placers, 1)) {
		out.node = belowBound.node
	}
	return out
}

// chooseLowest is for a running room without headroom: the node's other rooms lose layers.
func chooseLowest(walk iter.Seq[candidate], room ring.RoomID, floor headroom.Egress) ring.NodeID {
	var drawn draw
	for c := range walk {
		if c.barred == "" && c.floor.Plus(floor).Fits(c.ceiling) {
			drawn.enter(c.node, luck(c.node, room), floor.Into(c.ceiling.Minus(c.floor)))
		}
	}
	return drawn.node
}
