package sfu

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/connection"
	"github.com/holdfast-rtc/holdfast/sfu/data"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// people is the ledger of who is in a room: it takes people in, by their own attach, by the memory of others or, at a branch, by what the
// owner tells, and removes them. The room's loop owns it.
type people struct {
	current *heldPin
	members *members
	teller  *teller
	roll    *roll
	acts    *acts
	media   *forward.Room
	data    *data.Room
	loop    taskLoop
	log     *slog.Logger
	node    *Node
	id      ring.RoomID
	// expire is posted when the grace time of a peer, or of a room without people, is over.
	expire func()
	// counted is called when the number of people here, or of those who are connected, may have changed.
	counted func()

	peers peerMap
	// arrivals counts the peers so far.
	arrivals uint64
	// left has those who left in the first grace time, so that nobody expects them back.
	left map[forward.PeerID]bool
	// emptySince is zero while somebody is here.
	emptySince time.Time
	// lingering are connections of people who are moving to another node.
	lingering []*connection.Connection
	arrival   arrival
}

// attachesUnconfirmed is true for a peer in the room, and where an attach only asks for a peer that is neither there nor expected.
func (ps *people) attachesUnconfirmed(a attachment) bool {
	p, here := ps.peers[forward.PeerID(a.entry.GetId())]
	return here && !p.expected || !here && a.request.GetOnlyIfHere() || ps.members.owner != nil
}

// welcome puts a peer into the room: one that is new, or one that others have announced. What they remember of its hand, mutes and grant
// counts, unless it was changed here since.
func (ps *people) welcome(a attachment) *peer {
	id := forward.PeerID(a.entry.GetId())
	p, expected := ps.peers[id]
	before := a.entry
	if expected {
		before = p.entry
		keep(a.entry, before)
		if p.judged {
			a.entry.HandRaisedUnixMs = before.GetHandRaisedUnixMs()
		}
	} else {
		ps.arrivals++
		p = &peer{id: id, cameAt: time.Now(), joined: ps.arrivals, chatFrom: ps.acts.lines.last}
	}
	ps.acts.moderation.heed(a.entry)
	a.entry.Unlisted = !expected && ps.roll.unlists(a.entry, a.request)
	p.entry, p.expected = a.entry, false
	ps.acts.lastHand = max(ps.acts.lastHand, p.entry.GetHandRaisedUnixMs())
	ps.peers[id] = p
	delete(ps.left, id)
	switch {
	case !expected:
		ps.roll.announce(p, &control.RosterChange{Change: &control.RosterChange_Joined{Joined: p.entry}})
	case !sameEntry(before, p.entry):
		ps.roll.announce(p, &control.RosterChange{Change: &control.RosterChange_Updated{Updated: p.entry}})
	}
	ps.media.SetMuted(id, forward.SourceMicrophone, p.entry.GetAudioMuted())
	ps.media.SetMuted(id, forward.SourceCamera, p.entry.GetVideoMuted())
	ps.emptySince = time.Time{}
	ps.counted()
	return p
}

// expect takes in the people whom an arriving peer remembers from the room's former node. They have the grace time to come. What it
// remembers of people who are here already is restored.
func (ps *people) expect(entries []*control.Peer) {
	now := time.Now()
	if ps.members.owner != nil || !ps.roll.isSettling() {
		return
	}
	waiting := false
	for _, entry := range entries {
		id := forward.PeerID(entry.GetId())
		if p, known := ps.peers[id]; known {
			ps.acts.recall(p, entry)
			continue
		}
		if ps.left[id] || ps.acts.moderation.removed[id] || id == "" || entry.GetHidden() || entry.GetUnlisted() || !entryFits(entry) || len(ps.peers) >= ps.node.cfg.Limits.PeersPerRoom {
			continue
		}
		ps.arrivals++
		p := &peer{id: id, cameAt: now, joined: ps.arrivals, entry: rosterCopy(entry), expected: true, came: true, chatFrom: ps.acts.lines.last, deadline: now.Add(ps.node.cfg.Grace)}
		ps.peers[id] = p
		ps.acts.lastHand = max(ps.acts.lastHand, p.entry.GetHandRaisedUnixMs())
		ps.roll.announce(p, &control.RosterChange{Change: &control.RosterChange_Joined{Joined: p.entry}})
		waiting = true
	}
	if waiting {
		ps.loop.after(ps.node.cfg.Grace, ps.expire)
	}
}

// remove ends a peer: its stream, its connection and its media. The whole room is told, by the owner.
func (ps *people) remove(p *peer, why string) {
	ps.drop(p)
	if ps.members.owner != nil {
		ps.members.tell(ps.members.owner, &control.LinkMessage{Message: &control.LinkMessage_Left{Left: string(p.id)}})
	}
	ps.roll.announce(p, &control.RosterChange{Change: &control.RosterChange_Left{Left: string(p.id)}})
	ps.roll.fill()
	ps.log.Debug("peer removed", "peer", string(p.id), "why", why)
	ps.counted()
	ps.settleIfAll()
	ps.noteVacant()
}

// removeWhere also removes who is only expected, and refuses them later.
func (ps *people) removeWhere(peer, identity string, reply *control.RemoveReply) {
	for id, p := range ps.peers {
		if string(id) == peer || identity != "" && p.entry.GetIdentity() == identity {
			ps.expel(p, removedRefusal(), reply)
			ps.tellRemoved(p)
			ps.log.Info("peer removed by an operator", "peer", string(id), "identity", p.entry.GetIdentity())
		}
	}
}

// tellRemoved tells the branches that did not have a peer of its removal, since any may become the owner.
func (ps *people) tellRemoved(p *peer) {
	for _, m := range ps.members.branches {
		if m != p.place {
			ps.members.tell(m, &control.LinkMessage{Message: &control.LinkMessage_Personal{Personal: &control.LinkPersonal{
				Peer: string(p.id), Event: ps.current.stamp(removedRefusal().event()),
			}}})
		}
	}
}

// expel removes a peer for good and adds it to the reply.
func (ps *people) expel(p *peer, why *refusal, reply *control.RemoveReply) {
	ps.acts.moderation.remove(p.id)
	switch {
	case p.outbox != nil:
		p.outbox.end(ps.current.stamp(why.event()))
	case p.place != nil:
		ps.teller.send(p, why.event())
	}
	ps.remove(p, "removed by an operator")
	reply.Removed = append(reply.Removed, string(p.id))
	reply.Identities = append(reply.Identities, p.entry.GetIdentity())
}

// noteVacant begins the time after which a room without people closes.
func (ps *people) noteVacant() {
	if ps.vacant() && ps.emptySince.IsZero() {
		ps.emptySince = time.Now()
		ps.loop.after(ps.node.emptyGrace(), ps.expire)
	}
}

// vacant reports whether nobody is in the room, or, on a branch, at this node.
func (ps *people) vacant() bool {
	if ps.members.owner != nil {
		return ps.peers.here() == 0
	}
	return ps.peers.present() == 0
}

// drop ends a peer here, and tells nobody.
func (ps *people) drop(p *peer) {
	delete(ps.peers, p.id)
	p.gone.Store(true)
	ps.acts.moderation.note(p.entry)
	if p.outbox != nil {
		p.outbox.end(nil)
		p.outbox = nil
	}
	for _, c := range p.takeConnections() {
		ps.node.closeSoon(c.Close)
	}
	ps.media.RemovePeer(p.id)
	if ps.roll.isSettling() && len(ps.left) < ps.node.cfg.Limits.PeersPerRoom {
		ps.left[p.id] = true
	}
}

// fits makes room for a peer that is not here, perhaps by giving an absent peer's place away. Two kinds need no free place: a peer that
// is expected has one already, and one that was in the room on another node comes along in the first grace time (of hidden people
// nobody knows that they are expected).
func (ps *people) fits(a attachment) bool {
	id, most := forward.PeerID(a.entry.GetId()), ps.node.cfg.Limits.PeersPerRoom
	_, expected := ps.peers[id]
	comesAlong := a.request.GetKnownRoster() != 0 && !ps.left[id] && ps.roll.isSettling()
	if expected || comesAlong || len(ps.peers) < most {
		return true
	}
	ps.node.reached(ps.id, limitPeople, fmt.Sprintf("%d people, --room-people", most))
	return len(ps.peers) == most && ps.vacate()
}

// vacate gives the place of an absent peer away, if there is one.
func (ps *people) vacate() bool {
	leaving, places := ps.peers.longestAway()
	if leaving == nil {
		return false
	}
	ps.log.Info("place of an absent peer given away: the room is full", "peer", string(leaving.id), "places_of_the_identity", places)
	ps.remove(leaving, "was away from a full room")
	return true
}

// takeInAudience takes in an unlisted peer that a branch has and this owner does not know: former owners tell of nobody unlisted
// elsewhere.
func (ps *people) takeInAudience(m *member, told *control.LinkPeer) {
	entry := told.GetEntry()
	p := &peer{id: forward.PeerID(entry.GetId()), joined: ps.arrivals + 1, cameAt: time.Now(), entry: rosterCopy(entry), chatFrom: ps.acts.lines.last}
	if !entry.GetUnlisted() || !ps.roll.isSettling() || p.id == "" || ps.peers[p.id] != nil || ps.left[p.id] || ps.acts.moderation.removed[p.id] ||
		!entryFits(entry) || len(ps.peers) >= ps.node.cfg.Limits.PeersPerRoom {
		return
	}
	p.place, p.generation = m, told.GetGeneration()
	ps.arrivals++
	ps.peers[p.id] = p
	ps.roll.note(p)
	ps.roll.tellAudienceSoon()
}

// replicate takes over an entry of the owner's roster.
func (ps *people) replicate(entry *control.Peer) {
	id := forward.PeerID(entry.GetId())
	p := ps.peers[id]
	if p == nil {
		ps.arrivals++
		p = &peer{id: id, joined: ps.arrivals, place: ps.members.owner, entry: entry, knowsRosterChanges: true, chatFrom: ps.acts.lines.last}
		ps.peers[id] = p
		ps.showMuted(&control.Peer{}, entry)
		return
	}
	before := p.entry
	if p.renew(entry) && p.place != nil {
		ps.showMuted(before, entry)
	}
}

// admit gives somebody whom the owner let in a place here.
func (ps *people) admit(p *peer, entered *control.LinkEntered) *peer {
	if p == nil {
		ps.replicate(entered.GetEntry())
		p = ps.peers[forward.PeerID(entered.GetEntry().GetId())]
	}
	p.renew(entered.GetEntry())
	p.place, p.expected, p.chatFrom = nil, false, entered.GetLines()
	ps.emptySince = time.Time{}
	return p
}

// replicateAll takes over changes of the owner's roster. What is older than what is known changes nothing, as each entry is whole.
func (ps *people) replicateAll(changes []*control.RosterChange, seq uint64) {
	for _, change := range changes {
		entry := change.GetJoined()
		if entry == nil {
			entry = change.GetUpdated()
		}
		if entry != nil {
			ps.replicate(entry)
			continue
		}
		if p := ps.peers[forward.PeerID(change.GetLeft())]; p != nil {
			ps.drop(p)
		}
	}
	ps.roll.version.seq = max(ps.roll.version.seq, seq)
	ps.counted()
	ps.noteVacant()
}

// letGo gives a peer's place to another node, or to none that is known. Its media goes on here until its client has moved.
func (ps *people) letGo(p *peer, to *member) {
	ps.teller.supersede(p)
	p.place, p.called = to, false
	ps.data.Drop(string(p.id))
	for _, c := range p.takeConnections() {
		ps.lingering = append(ps.lingering, c)
		ps.lingerUntil(c, time.Now().Add(liveHandOverTime))
	}
	ps.counted()
}

// lingerUntil closes a connection once its client has left it.
func (ps *people) lingerUntil(c *connection.Connection, until time.Time) {
	if c.Alive() && !c.Left() && time.Now().Before(until) {
		ps.loop.after(lingerLook, func() { ps.lingerUntil(c, until) })
		return
	}
	for i, other := range ps.lingering {
		if other == c {
			ps.lingering = append(ps.lingering[:i], ps.lingering[i+1:]...)
			break
		}
	}
	ps.node.closeSoon(c.Close)
}

// takeBack gives a peer that attached here its place here.
func (ps *people) takeBack(p *peer, generation uint64) {
	if p.place == nil {
		return
	}
	ps.members.release(p, generation)
	p.place, p.called, p.awayThere = nil, false, false
}

// showMuted has the room's media know what a peer elsewhere has muted; before is what was known of it.
func (ps *people) showMuted(before, entry *control.Peer) {
	id := forward.PeerID(entry.GetId())
	ps.media.SetMuted(id, forward.SourceMicrophone, entry.GetAudioMuted())
	ps.media.SetMuted(id, forward.SourceCamera, entry.GetVideoMuted())
	if before.GetScreenShared() != entry.GetScreenShared() {
		ps.media.SetMuted(id, forward.SourceScreen, !entry.GetScreenShared())
	}
	if before.GetScreenAudio() != entry.GetScreenAudio() {
		ps.media.SetMuted(id, forward.SourceScreenAudio, !entry.GetScreenAudio())
	}
}

// settleWithin is how long a room waits for those who come with it in a live move.
const settleWithin = 8 * time.Second

// arrival is how far a live move to this node is. Without a move, nobody arrives.
type arrival int

const (
	nobodyArrived arrival = iota
	someArrived
	settled
)

// arrive notes that a peer shows this node's media. The first one begins the wait for the others.
func (ps *people) arrive(p *peer) {
	p.arrived = true
	switch ps.arrival {
	case nobodyArrived:
		ps.arrival = someArrived
		ps.loop.after(max(settleWithin-time.Since(ps.roll.began), 0), ps.settle)
	case someArrived:
	case settled:
		ps.teller.send(p, settledEvent())
		return
	}
	ps.settleIfAll()
}

// settleIfAll ends the wait once everybody who comes from the former node has arrived.
func (ps *people) settleIfAll() {
	if ps.arrival != someArrived {
		return
	}
	for _, p := range ps.peers {
		if p.came && !p.arrived {
			return
		}
	}
	ps.settle()
}

// settle tells everybody that nobody needs the former node any more.
func (ps *people) settle() {
	if ps.arrival == settled {
		return
	}
	ps.arrival = settled
	ps.teller.sendAll(settledEvent())
}

func settledEvent() *control.PeerEvent {
	return &control.PeerEvent{Event: &control.PeerEvent_Settled{Settled: &control.Settled{}}}
}
