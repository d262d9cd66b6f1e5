package orchestrator

import (
	"iter"

	"github.com/holdfast-rtc/holdfast/ring"
)

// idleShare: a node whose load is below this part of its ceiling is never passed over for
// being above the bound. With few rooms any room is a large part of the whole, and the
// bound would refuse the ring's owner every time.
const idleShare = 0.10

// candidate is one node of the walk, as the choice sees it.
type candidate struct {
	node    ring.NodeID
	load    Egress // reported and reserved, without the new room
	ceiling Egress // never zero in a dimension
	barred  bar    // why it must not be asked; empty when it may be
}

// bar is why a node must not be asked.
type bar string

const (
	barUnknown     bar = "its address is not known"
	barDraining    bar = "it is draining"
	barDead        bar = "its process is dead"
	barRefusedThis bar = "it refused this room"
	barRefusing    bar = "it refused a room a moment ago"
)

// totals sums up the nodes of the walk.
type totals struct {
	load, ceiling Egress
}

// verdict is what the walk says about one node.
type verdict string

const (
	within verdict = "within the bound"
	idle   verdict = "nearly idle"
	above  verdict = "above the bound"
	full   verdict = "no headroom"
	barred verdict = "barred"
)

// bound is the load/ceiling that a node may have with the new room included: (1+epsilon)
// times that of all nodes together, the new room included.
func bound(total totals, need Egress, epsilon float64) float64 {
	return (1 + epsilon) * total.load.plus(need).share(total.ceiling)
}

// judge says whether the room may go to c. within and idle are a yes; above means only if
// there is no yes.
func judge(c candidate, need Egress, limit float64) verdict {
	switch with := c.load.plus(need); {
	case c.barred != "":
		return barred
	case !with.fits(c.ceiling):
		return full
	case with.share(c.ceiling) <= limit:
		return within
	case c.load.share(c.ceiling) < idleShare:
		return idle
	default:
		return above
	}
}

// choice is the outcome of a walk.
type choice struct {
	node    ring.NodeID // empty when no node can take the room
	asked   int         // how many nodes were looked at and not barred
	refused int         // how many were barred because they have no headroom by their own word
	best    Egress      // the most free egress among those asked
}

// choose is the bounded-load walk: the first node clockwise that is within the bound, or
// nearly idle; if there is none, the node with the lowest load/ceiling among those whose
// ceiling covers the room, the first clockwise of equal ones. It depends on its arguments
// alone, so edges with the same view choose the same node.
func choose(walk iter.Seq[candidate], total totals, need Egress, epsilon float64) choice {
	var (
		out   choice
		least float64
		limit = bound(total, need, epsilon)
	)
	for c := range walk {
		v := judge(c, need, limit)
		if v == within || v == idle {
			return choice{node: c.node}
		}
		if v == barred {
			if c.barred == barRefusedThis || c.barred == barRefusing {
				out.refused++
			}
			continue
		}
		out.asked++
		if free := c.ceiling.minus(c.load); out.asked == 1 || free.BitsPerSecond > out.best.BitsPerSecond {
			out.best = free
		}
		if share := c.load.share(c.ceiling); v == above && (out.node == "" || share < least) {
			out.node, least = c.node, share
		}
	}
	return out
}
