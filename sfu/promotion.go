package sfu

import (
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// A branch becomes the owner of its room when the room's pin names its node. The other branches stay branches: the new owner links
// itself to them, and the clients there keep their connections.

// relinkWait is how long somebody whom a branch of the former owner has waits for the new owner's link to it. Its media goes on
// meanwhile. It is below the patience of signaling nodes.
const relinkWait = time.Second

// promote has a branch be the room's owner, under a pin of this node; nil: there is no such branch. It needs mu. The loop follows with
// becomeOwner, before anything else that an owner does.
func (n *Node) promote(id ring.RoomID, p pin.Pin) *room {
	r := n.branches[id]
	if r == nil || !r.pin().Fence.Less(p.Fence) {
		return nil
	}
	delete(n.branches, id)
	n.rooms[id] = r
	r.current.Store(&p)
	return r
}

// becomeOwner takes over a room whose pin is this node's by now. People here stay as they are. Those of the former owner are expected, and
// so are those of the other branches, until the link to their branch tells of them.
func (r *room) becomeOwner() {
	current := r.pin()
	if r.members.owner == nil || current.Node != r.node.cfg.Node || current.Boot != r.node.cfg.Boot {
		return
	}
	former := r.members.owner
	if former.link != nil {
		former.link.end()
		former.link = nil
	}
	r.members.owner = nil
	r.roll.book = r.node.rosters.Open(r.id, current)
	r.roll.book.Learn(r.state.read)
	now := time.Now()
	for _, place := range former.others {
		r.spreading.appoint(place, "it was a branch of the former owner")
	}
	r.roll.began, r.people.emptySince = now, time.Time{}
	r.teller.endFormerStreams(r.branch.movedLive == current.Fence)
	for _, p := range r.peers {
		if p.place != nil {
			p.place, p.expected, p.came, p.deadline = nil, true, true, now.Add(r.node.cfg.Grace)
			p.knowsRosterChanges = false
			r.acts.lastHand = max(r.acts.lastHand, p.entry.GetHandRaisedUnixMs())
		}
		r.roll.note(p)
	}
	for id, e := range r.branch.entering {
		e.refused = elsewhere(nil)
		r.branch.answer(id, e)
	}
	r.after(r.node.cfg.Grace, r.expire)
	giveUp := now.Add(longestSilence)
	r.after(r.node.cfg.Grace, func() { r.roll.settle(giveUp) })
	r.count()
	r.roll.tellAudienceSoon()
	r.people.noteVacant()
	r.log.Info("branch promoted", "fence", current.Fence.String(), "former_owner", former.place.GetNode(), "people", r.peers.here(), "expected", len(r.peers)-r.peers.here())
	r.node.cfg.Events.Record(events.Event{
		Kind: events.BranchPromoted, Room: r.id, Node: r.node.cfg.Node, From: ring.NodeID(former.place.GetNode()), Peers: r.peers.here(), About: current.Fence.String(),
	})
	r.node.cfg.Metrics.Opened()
	r.node.cfg.Events.Record(events.Event{Kind: events.RoomOpened, Room: r.id, Node: r.node.cfg.Node, About: current.Fence.String()})
}

// knows reports whether the room's other nodes, as a branch was told of them, have the one that a pin names.
func (m *member) knows(p pin.Pin) bool {
	for _, place := range m.others {
		if place.GetBoot() == string(p.Boot) {
			return true
		}
	}
	return false
}

// heedMembers remembers the other branches, but for those that would be more than a room may have.
func (m *member) heedMembers(told *control.LinkMembers) {
	m.others = told.GetBranches()[:min(len(told.GetBranches()), mostBranches-1)]
}

// returns takes somebody who is expected for a person that a branch has. Its link has just told so.
func (p *peer) returns(m *member, generation uint64) {
	p.place, p.generation = m, generation
	p.expected, p.came, p.deadline = false, false, time.Time{}
}
