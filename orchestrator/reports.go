package orchestrator

import (
	"cmp"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/ring"
)

// catchUp brings the ledger up to the present: reservations lapse, and a new view's load reports replace those that
// they include. The caller holds mu.
func (l *ledger) catchUp(view *cluster.View) {
	now := l.clock()
	for len(l.order) > 0 && !now.Before(l.order[0].at) {
		first := l.order[0]
		l.order = l.order[1:]
		if r := l.reserved[first.room]; !now.Before(r.lapses) {
			l.drop(first.room)
		}
	}
	if view == l.view {
		return
	}
	l.view, l.base = view, sum(view)
	for room, r := range l.reserved {
		l.dropIfReported(room, r)
	}
	for boot, until := range l.refused {
		if !now.Before(until) {
			delete(l.refused, boot)
		}
	}
}

func (l *ledger) dropIfReported(room ring.RoomID, r reservation) {
	if l.view == nil {
		return
	}
	node, ok := l.view.Nodes[r.node]
	if !ok || node.Boot != r.boot || r.charged > 0 && node.Load.Seq >= r.charged {
		l.drop(room)
	}
}

// sum adds up the load reports. A node's load counts up to its ceiling only, because an overloaded node must not
// raise the bound for the others.
func sum(view *cluster.View) totals {
	t := totals{placers: len(view.Signaling)}
	for _, id := range view.Ring.Nodes() {
		if node, ok := view.Nodes[id]; ok {
			ceiling := ceilingOf(node)
			t.load = t.load.Plus(reported(node).Min(ceiling))
			t.ceiling = t.ceiling.Plus(ceiling)
		}
	}
	return t
}

func reported(node cluster.Node) headroom.Egress {
	return headroom.Egress{BitsPerSecond: node.Load.EgressBitsPerSecond, PacketsPerSecond: node.Load.EgressPacketsPerSecond}
}

func floorOf(node cluster.Node) headroom.Egress {
	return headroom.Egress{BitsPerSecond: node.Load.FloorBitsPerSecond, PacketsPerSecond: node.Load.FloorPacketsPerSecond}
}

// A node without a load report is taken to forward what one core can forward over 1 Gbit/s.
const (
	assumedBitsPerSecond    = 1_000_000_000
	assumedPacketsPerSecond = 100_000
)

func ceilingOf(node cluster.Node) headroom.Egress {
	ceiling := headroom.Egress{BitsPerSecond: node.Load.CeilingBitsPerSecond, PacketsPerSecond: node.Load.CeilingPacketsPerSecond}
	ceiling.BitsPerSecond = cmp.Or(ceiling.BitsPerSecond, assumedBitsPerSecond)
	ceiling.PacketsPerSecond = cmp.Or(ceiling.PacketsPerSecond, assumedPacketsPerSecond)
	return ceiling
}

func (l *ledger) explain(view *cluster.View, out *Explanation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.catchUp(view)
	total := l.totals()
	if total.ceiling == (headroom.Egress{}) {
		return
	}
	walk := l.walk(view, out.Room, avoidance{})
	made := choose(walk, total, out.Room, out.Need)
	out.Bound = bound(total, out.Need)
	for c := range walk {
		node := view.Nodes[c.node]
		out.Walk = append(out.Walk, Step{
			Node: c.node, Reported: reported(node), Reserved: l.sums[node.Boot], Ceiling: c.ceiling,
			Share: c.load.Plus(out.Need).Share(c.ceiling), Chosen: c.node == made.node,
			Why: cmp.Or(string(c.barred), string(fitOf(c, out.Need, out.Bound))),
		})
	}
}
