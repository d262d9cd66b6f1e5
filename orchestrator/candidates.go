package orchestrator

import (
	"maps"
	"slices"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/spread"
)

// A smaller room costs no node much.
const largeRoom = 20

// needOf returns what a node is expected to send for a room at first. A large new room is charged as half of a node, of the largest one, if two
// nodes can divide it between them.
func needOf(view *cluster.View, expect headroom.Room) headroom.Egress {
	var most headroom.Egress
	able := 0
	if expect.People >= largeRoom {
		for _, n := range view.Nodes {
			if n.Can(control.CapabilityBranch) && !n.Draining {
				able, most = able+1, most.Max(ceilingOf(n))
			}
		}
	}
	if able < 2 {
		return expect.Cost()
	}
	return expect.First(most)
}

// Standby returns the node that stands by for the clients of a room on the node owner: the first one from the room on the ring that can and has
// headroom for the room besides what is promised to other rooms of the owner, because they all move at once if the owner dies. All nodes with
// one view and the same needs have the same answer. The node before stays the standby while it is able to, so that a room has one standby. It is
// false if no node is able.
func Standby(view *cluster.View, room ring.RoomID, owner, before ring.NodeID, need headroom.Egress, promised map[ring.NodeID]headroom.Egress) (cluster.Node, bool) {
	var first cluster.Node
	found := false
	for id := range view.Ring.Successors(room) {
		n := view.Nodes[id]
		if !standsBy(n, owner) || n.Draining || n.Control == "" || !headroom.Takes(reported(n).Plus(promised[id]), need, ceilingOf(n)) {
			continue
		}
		if id == before {
			return n, true
		}
		if !found {
			first, found = n, true
		}
	}
	return first, found
}

// standsBy reports whether a node can go on with the connections of the node owner.
func standsBy(n cluster.Node, owner ring.NodeID) bool {
	return n.ID != owner && n.Can(control.CapabilityStandby)
}

// Candidates returns the media nodes of a view in the order in which the owner of a large room asks them to become a branch: as the ring has
// them from the room on, and then those off the ring, which only explain why they are no branches. All nodes with one view have one order.
func Candidates(view *cluster.View, room ring.RoomID) []spread.Candidate {
	all := make([]spread.Candidate, 0, len(view.Nodes))
	add := func(n cluster.Node) {
		all = append(all, spread.Candidate{
			Node: n.ID, Boot: n.Boot, Control: n.Control, Able: n.Can(control.CapabilityBranch) && n.Control != "", Draining: n.Draining,
			Suspect: n.Suspect || n.Unreachable, Load: reported(n), Ceiling: ceilingOf(n),
		})
	}
	onRing := map[ring.NodeID]bool{}
	for id := range view.Ring.Successors(room) {
		if n, known := view.Nodes[id]; known {
			onRing[id] = true
			add(n)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(view.Nodes)) {
		if !onRing[id] {
			add(view.Nodes[id])
		}
	}
	return all
}
