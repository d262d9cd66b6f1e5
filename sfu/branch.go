package sfu

import (
	"log/slog"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/sources"
)

const (
	// A branch is one for so many people more at least, or none.
	branchPeople = 50
	// enterWithin bounds the wait for the owner's word about a newcomer.
	enterWithin = 3 * time.Second
)

// entrant is somebody whom the owner was asked about. The branch's loop sets the results before it closes done.
type entrant struct {
	attachment attachment
	done       chan struct{}
	session    *session
	refused    *refusal
}

// branchRoom is what becomes of a branch, or happens at it, by its owner's word.
type branchRoom interface {
	attachNow(a attachment) (*session, *refusal, error)
	becomeOwner()
	handOverNow(higher pin.Pin, live bool)
	close(reason string)
	end(reason string)
}

// branchSide is the side of a branch in a room on several nodes: it replicates what the owner tells, asks it about newcomers, and passes on
// what people here say for the whole room. It does nothing while this node is the room's owner. The room's loop owns it; its waits are
// ordered as those of branches.
type branchSide struct {
	room     branchRoom
	node     *Node
	id       ring.RoomID
	current  *heldPin
	members  *members
	teller   *teller
	roll     *roll
	acts     *acts
	people   *people
	messages *messages
	reoffers *reoffers
	state    *roomState
	peers    peerMap
	media    *forward.Room
	loop     taskLoop
	log      *slog.Logger

	// entering are who waits for the owner's word, and entries counts them all.
	entering map[uint64]*entrant
	entries  uint64
	// movedLive is the fence of the last live move of which the owner told.
	movedLive pin.Fence
}

// begin makes the room what its owner says, and tells the owner whom it has. It runs on the branch's loop.
func (b *branchSide) begin(s *linkStream, owner pin.Pin, told []*control.Appoint) *refusal {
	if current := b.current.pin().Fence; owner.Fence.Less(current) {
		return fenced(current)
	}
	if b.members.owner.link != nil {
		b.members.owner.link.end()
	}
	former := b.current.pin()
	b.current.Store(&owner)
	if former.Fence.Less(owner.Fence) {
		b.teller.endFormerStreams(b.movedLive == owner.Fence)
	}
	b.members.owner.place, b.members.owner.link = &control.Place{Node: string(owner.Node), Boot: string(owner.Boot), Control: owner.Control}, s
	b.members.owner.ready = true
	b.messages.linked.Store(true)
	b.roll.run, b.roll.version.seq = told[0].GetRun(), told[0].GetSeq()
	for _, id := range told[0].GetRemoved() {
		b.acts.moderation.remove(forward.PeerID(id))
	}
	b.state.heed(told[0].GetSettings())
	b.acts.followLines(told[0].GetLines())
	known := b.replicate(told)
	for _, entry := range told[0].GetDemoted() {
		b.acts.moderation.note(entry)
	}
	answer := &control.Appointed{Demoted: b.acts.moderation.demotedProto()}
	for id := range b.acts.moderation.removed {
		answer.Removed = append(answer.Removed, string(id))
	}
	for id, p := range b.peers {
		switch {
		case p.isHere() && (known[id] || p.outbox != nil || p.entry.GetUnlisted() && former.Fence.Less(owner.Fence)):
			yours := &control.Peer{Id: string(id)}
			if p.entry.GetUnlisted() {
				// A new owner may not know of the peer.
				yours = p.entry
			}
			answer.Yours = append(answer.Yours, &control.LinkPeer{Entry: yours, Generation: p.generation})
		case !known[id]:
			b.people.drop(p)
		}
	}
	b.members.tell(b.members.owner, &control.LinkMessage{Message: &control.LinkMessage_Appointed{Appointed: answer}})
	for _, p := range b.peers {
		if p.isHere() {
			b.teller.send(p, &control.PeerEvent{Seq: b.roll.version.seq, Event: &control.PeerEvent_Roster{Roster: &control.Roster{Peers: b.peers.shownTo(p)}}})
			b.teller.tellAway(p, p.outbox == nil)
		}
	}
	for id, e := range b.entering {
		e.refused = refuse(control.Refusal_REFUSAL_UNCONFIRMED, "the link to the room's owner was made anew: attach again")
		b.answer(id, e)
	}
	return nil
}

// replicate takes in the people of whom the owner tells, and returns who they are.
func (b *branchSide) replicate(told []*control.Appoint) map[forward.PeerID]bool {
	known := map[forward.PeerID]bool{}
	for _, part := range told {
		for _, p := range part.GetPeers() {
			if id := forward.PeerID(p.GetEntry().GetId()); id != "" && entryFits(p.GetEntry()) {
				known[id] = true
				b.people.replicate(p.GetEntry())
				b.peers[id].chatFrom = p.GetLines()
			}
		}
	}
	return known
}

// judge refuses an Attach under another fence than the owner's.
func (b *branchSide) judge(p pin.Pin) *refusal {
	switch current := b.current.pin(); {
	case p.Fence.Less(current.Fence):
		return fenced(current.Fence)
	case current.Fence.Less(p.Fence):
		return elsewhere(nil)
	}
	return nil
}

// ask asks whether somebody may enter. It runs on the branch's loop.
func (b *branchSide) ask(e *entrant) uint64 {
	b.entries++
	if !b.members.owner.up() {
		e.refused = elsewhere(nil)
		close(e.done)
		return b.entries
	}
	b.entering[b.entries] = e
	b.members.tell(b.members.owner, &control.LinkMessage{Message: &control.LinkMessage_Enter{Enter: &control.LinkEnter{Id: b.entries, Attach: e.attachment.request}}})
	return b.entries
}

func (b *branchSide) answer(id uint64, e *entrant) {
	delete(b.entering, id)
	close(e.done)
}

// heedEntered attaches somebody whom the owner let in.
func (b *branchSide) heedEntered(answer *control.LinkEntered) {
	e := b.entering[answer.GetId()]
	if e == nil {
		if answer.GetRefused() == nil {
			// Nobody waits any more.
			b.tellGone(answer.GetEntry().GetId())
		}
		return
	}
	defer b.answer(answer.GetId(), e)
	if refused := answer.GetRefused(); refused != nil {
		e.refused = &refusal{code: refused.GetCode(), message: refused.GetMessage(), ended: refused.GetEnded(), place: refused.GetElsewhere()}
		if current, err := refused.GetCurrent().Value(); err == nil {
			e.refused.current = current
		}
		return
	}
	changes, err := control.DecodeRosterChanges(answer.GetChanges())
	if err != nil {
		e.refused = brokeRefusal()
		return
	}
	b.people.replicateAll(changes, answer.GetSeq())
	e.attachment.entered = answer
	e.session, e.refused, err = b.room.attachNow(e.attachment)
	if err != nil {
		e.refused = elsewhere(nil)
	}
	if p := b.peers[forward.PeerID(answer.GetEntry().GetId())]; e.refused != nil && (p == nil || !p.isHere()) {
		b.tellGone(answer.GetEntry().GetId())
	}
}

// tellGone tells the owner that somebody whom it let in is not here.
func (b *branchSide) tellGone(peer string) {
	b.members.tell(b.members.owner, &control.LinkMessage{Message: &control.LinkMessage_Away{Away: &control.LinkAway{Peer: peer, Away: true, Gone: true}}})
}

// hear does what the owner says. It runs on the link's goroutine.
func (b *branchSide) hear(s *linkStream, message *control.LinkMessage) {
	if data := message.GetData(); data != nil {
		b.messages.hear(data)
		return
	}
	b.loop.post(func() {
		if b.members.owner != nil && b.members.owner.link == s {
			b.heed(message)
		}
	})
}

func (b *branchSide) heed(message *control.LinkMessage) {
	if fence, err := message.GetFence().Value(); err == nil && b.current.pin().Fence.Less(fence) {
		higher := b.current.pin()
		higher.Fence = fence
		b.current.Store(&higher)
	}
	switch said := message.GetMessage().(type) {
	case *control.LinkMessage_Told:
		b.heedTold(said.Told)
	case *control.LinkMessage_Personal:
		b.heedPersonal(said.Personal)
	case *control.LinkMessage_Entered:
		b.heedEntered(said.Entered)
	case *control.LinkMessage_Settings:
		b.state.heed(said.Settings)
	case *control.LinkMessage_Elsewhere:
		b.heedElsewhere(said.Elsewhere)
	case *control.LinkMessage_Starved:
		b.reoffers.heed(b.members.owner, said.Starved)
	case *control.LinkMessage_Members:
		b.members.owner.heedMembers(said.Members)
	default:
		// An owner of a later version says more.
	}
}

// heedTold passes on what everybody in the room is told.
func (b *branchSide) heedTold(event *control.PeerEvent) {
	switch e := event.GetEvent().(type) {
	case *control.PeerEvent_RosterChanges:
		changes, err := control.DecodeRosterChanges(e.RosterChanges)
		if err != nil {
			b.log.Warn("changes of the owner's roster cannot be read: the link begins anew", "error", err)
			b.members.owner.link.end()
			return
		}
		b.people.replicateAll(changes, event.GetSeq())
		b.teller.sendAll(event)
	case *control.PeerEvent_Chat:
		if !b.acts.lines.has(e.Chat) {
			b.acts.lines.keep(e.Chat, time.Now())
			b.acts.tellLine(e.Chat)
		}
	case *control.PeerEvent_Reactions:
		b.teller.sendAll(event)
	case *control.PeerEvent_Audience:
		b.roll.heedAudience(event)
	case *control.PeerEvent_Fenced:
		higher, err := e.Fenced.GetPin().Value()
		if err != nil {
			b.room.end("outranked")
			return
		}
		if e.Fenced.GetLive() {
			b.movedLive = higher.Fence
		}
		if higher.Node == b.node.cfg.Node && higher.Boot == b.node.cfg.Boot {
			// The room moves to this branch, and its people need not.
			b.node.mu.Lock()
			b.node.promote(b.id, higher)
			b.node.mu.Unlock()
			b.room.becomeOwner()
			return
		}
		if b.members.owner.knows(higher) {
			b.follow(higher)
			return
		}
		b.room.handOverNow(higher, e.Fenced.GetLive())
	default:
		// An owner of a later version says more.
	}
}

// heedPersonal passes on what one peer here is told.
func (b *branchSide) heedPersonal(told *control.LinkPersonal) {
	if told.GetEvent().GetRefused().GetCode() == control.Refusal_REFUSAL_REMOVED {
		// Also a branch that does not have the peer is told, since it may become the owner.
		b.acts.moderation.remove(forward.PeerID(told.GetPeer()))
	}
	p := b.peers[forward.PeerID(told.GetPeer())]
	if p == nil || !p.isHere() {
		return
	}
	event := b.current.stamp(told.GetEvent())
	switch e := event.GetEvent().(type) {
	case *control.PeerEvent_Refused:
		if p.outbox != nil {
			p.outbox.end(event)
		}
		b.people.drop(p)
		b.people.counted()
	case *control.PeerEvent_Silenced:
		if source, ok := sources.Of(e.Silenced.GetSource()); ok {
			b.media.SetMuted(p.id, source, true)
		}
		b.teller.queue(p, event)
	case *control.PeerEvent_Granted:
		p.granted = e.Granted
		p.keepGranted()
		b.acts.permit(p, rosterCopy(p.entry))
		b.teller.queue(p, event)
	case *control.PeerEvent_RosterChange:
		if entry := e.RosterChange.GetUpdated(); entry.GetId() == told.GetPeer() {
			p.renew(entry)
		}
		b.teller.queue(p, event)
	default:
		b.teller.queue(p, event)
	}
}

// heedElsewhere has a peer move to another node, or notes that it has.
func (b *branchSide) heedElsewhere(told *control.LinkElsewhere) {
	p := b.peers[forward.PeerID(told.GetPeer())]
	switch {
	case p == nil || !p.isHere():
	case told.GetGeneration() == 0:
		b.teller.send(p, &control.PeerEvent{Event: &control.PeerEvent_Elsewhere{Elsewhere: told.GetElsewhere()}})
	case told.GetGeneration() > p.generation || p.outbox == nil:
		b.people.letGo(p, b.members.owner)
		b.people.noteVacant()
	}
}

// unlinked notes that the link is down. released says that the owner needs the branch no more.
func (b *branchSide) unlinked(s *linkStream, released bool) {
	if b.members.owner == nil || b.members.owner.link != s {
		return
	}
	b.members.owner.link, b.members.owner.cutAt = nil, time.Now()
	if released {
		b.room.close("the owner needs this branch no more")
		return
	}
	b.log.Info("link to the room's owner cut")
	cutAt := b.members.owner.cutAt
	b.loop.after(branchLostAfter, func() {
		if b.members.owner != nil && b.members.owner.link == nil && b.members.owner.cutAt.Equal(cutAt) {
			b.sendAway()
		}
	})
	b.people.emptySince = time.Time{}
	b.people.noteVacant()
}

// sendAway has everybody here ask the room's owner for a place. Their media goes on until they have moved.
func (b *branchSide) sendAway() {
	b.log.Warn("the room's owner is silent: people here ask for places elsewhere", "owner", b.members.owner.place.GetNode(), "people", b.peers.here())
	for _, p := range b.peers {
		if !p.isHere() {
			continue
		}
		p.sentAway = true
		b.teller.send(p, &control.PeerEvent{Event: &control.PeerEvent_Elsewhere{Elsewhere: &control.Elsewhere{}}})
		if p.outbox == nil {
			// It has left before, perhaps because this node was frozen.
			p.deadline = earlier(p.deadline, time.Now().Add(sentAwayGrace))
			b.loop.after(sentAwayGrace, b.teller.expire)
		}
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// passOn tells the owner what a peer here says for the whole room, and reports whether the message was one of those.
func (b *branchSide) passOn(p *peer, message *control.PeerMessage) bool {
	if b.members.owner == nil {
		return false
	}
	switch m := message.GetMessage().(type) {
	case *control.PeerMessage_Mute:
		if source, ok := sources.Of(m.Mute.GetSource()); ok {
			b.media.SetMuted(p.id, source, m.Mute.GetMuted())
		}
	case *control.PeerMessage_Say, *control.PeerMessage_Rename, *control.PeerMessage_Hand, *control.PeerMessage_React:
	default:
		return false
	}
	b.members.tell(b.members.owner, &control.LinkMessage{Message: &control.LinkMessage_Said{Said: &control.LinkSaid{Peer: string(p.id), Message: message}}})
	return true
}

// tellDraining tells the owner that this node takes nobody more, so that it gathers the branch.
func (b *branchSide) tellDraining() {
	if b.members.owner == nil {
		return
	}
	refused := refuse(control.Refusal_REFUSAL_DRAINING, "node %s drains", b.node.cfg.Node)
	b.members.tell(b.members.owner, &control.LinkMessage{Message: &control.LinkMessage_Appointed{Appointed: &control.Appointed{Refused: refused.event().GetRefused()}}})
}

// follow waits for the link of the room's new owner, of which this node stays a branch. The pin is confirmed by the owner's appointment.
// Without a link, people here ask for other places after a while.
func (b *branchSide) follow(higher pin.Pin) {
	b.log.Info("another branch of the room becomes its owner", "owner", string(higher.Node), "fence", higher.Fence.String())
	if link := b.members.owner.link; link != nil {
		link.end()
		b.unlinked(link, false)
	}
}
