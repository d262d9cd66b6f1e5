package sfu

import (
	"log/slog"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/people/roster"
)

// roll is a room's roster as everybody is told of it, and as the store has it. It lists the audience, numbers the changes and tells them,
// at the owner; a branch passes on what its owner tells. The room's loop owns it.
type roll struct {
	current *heldPin
	members *members
	teller  *teller
	peers   peerMap
	loop    taskLoop
	log     *slog.Logger
	grace   time.Duration
	// listed is how many people are in the roster at most.
	listed int
	// steady returns for how long the store has answered without a pause.
	steady func() time.Duration

	book *roster.Book
	// run names the room as its owner opened it, for signaling nodes; never 0. A branch has the owner's.
	run      uint64
	version  rosterVersion
	changes  rosterChanges
	audience audience
	// began is when this node became the room's owner, or a branch: for a grace time the people of a former owner are expected.
	began time.Time
}

// announce tells everybody of a change of the roster, in a large room together with others. Of a hidden peer only the peer itself is told.
// An unlisted peer that has changed is listed.
func (l *roll) announce(p *peer, change *control.RosterChange) {
	if l.members.owner != nil {
		// The owner announces, also what it was told by this branch.
		return
	}
	l.note(p)
	if p.entry.GetHidden() {
		// What waits comes first, since it has this number or a lower one.
		l.tellChanges()
		l.teller.send(p, &control.PeerEvent{Seq: l.version.seq, Event: &control.PeerEvent_RosterChange{RosterChange: change}})
		return
	}
	if p.entry.GetUnlisted() {
		if change.GetUpdated() == nil {
			l.tellAudienceSoon()
			return
		}
		change = l.list(p)
	}
	l.version.seq++
	l.changes.add(change)
	l.teller.tellOlder(&control.PeerEvent{Seq: l.version.seq, Event: &control.PeerEvent_RosterChange{RosterChange: change}})
	l.tellChangesSoon()
}

func (l *roll) tell(p *peer) {
	p.toldAt = time.Now()
	l.announce(p, &control.RosterChange{Change: &control.RosterChange_Updated{Updated: p.entry}})
}

// tellSoon tells the others of an entry at once, or what it is at the end of muteEvery.
func (l *roll) tellSoon(p *peer) {
	if p.telling {
		return
	}
	wait := muteEvery - time.Since(p.toldAt)
	if wait <= 0 {
		l.tell(p)
		return
	}
	p.telling = true
	l.loop.after(wait, func() {
		p.telling = false
		// An entry that is again as it was told is told, too: whoever came meanwhile has seen another.
		if !p.gone.Load() {
			l.tell(p)
		}
	})
}

// tellMany tells everybody of several changed entries at once. Nobody of them is hidden.
func (l *roll) tellMany(changed []*peer) {
	if len(changed) <= manyChanges {
		for _, p := range changed {
			l.tell(p)
		}
		return
	}
	for _, p := range changed {
		p.toldAt = time.Now()
		l.version.seq++
		l.changes.add(l.changeOf(p))
	}
	l.tellChanges()
	for _, p := range l.peers {
		if p.place == nil && !p.knowsRosterChanges {
			l.teller.send(p, &control.PeerEvent{Seq: l.version.seq, Event: &control.PeerEvent_Roster{Roster: &control.Roster{Peers: l.peers.shownTo(p)}}})
		}
	}
}

func (l *roll) tellChangesSoon() {
	if l.changes.planned {
		return
	}
	wait := l.changes.due(len(l.peers), time.Now())
	if wait <= 0 {
		l.tellChanges()
		return
	}
	l.changes.planned = true
	l.loop.after(wait, func() {
		if l.changes.planned {
			l.tellChanges()
		}
	})
}

// tellChanges tells everybody what changed since the last time, in one event that is encoded once.
func (l *roll) tellChanges() {
	if len(l.changes.untold) == 0 {
		return
	}
	encoded, err := l.changes.take(time.Now())
	if err != nil {
		l.log.Error("changes of the roster are not encoded: everybody's stream ends", "error", err)
	}
	event := l.current.stamp(&control.PeerEvent{Seq: l.version.seq, Event: &control.PeerEvent_RosterChanges{RosterChanges: encoded}})
	l.members.tellBranches(event)
	for _, p := range l.peers {
		switch {
		case !p.knowsRosterChanges:
		case err != nil && p.outbox != nil:
			p.outbox.end(nil)
			l.teller.detach(p)
		default:
			l.teller.queue(p, event)
		}
	}
}

// noteAttached has the store know who attached, and lists a peer that no longer only watches, or whose signaling node knows no audience.
func (l *roll) noteAttached(p *peer) {
	l.note(p)
	if l.members.owner == nil && p.entry.GetUnlisted() && (p.canPublish || p.entry.GetModerator() || !p.knowsAudience) {
		l.tell(p)
	}
}

// note has the store know who is in the room. A peer is in the room also in the grace time, and while it is expected.
func (l *roll) note(p *peer) {
	if !p.gone.Load() {
		l.book.Put(roster.Peer{ID: string(p.id), Identity: p.entry.GetIdentity(), Name: p.entry.GetName(), Hidden: p.entry.GetHidden(), Shows: p.shows()})
		return
	}
	lastSeen := time.Now()
	if !p.deadline.IsZero() {
		lastSeen = p.deadline.Add(-l.grace)
	}
	l.book.Drop(string(p.id), lastSeen)
}

func (l *roll) isSettling() bool { return time.Since(l.began) < l.grace }

// settle ends the wait for the people of the former owner, once the store has answered for a grace time: while it was silent,
// nobody could ask it for the room and come back. It waits no longer than until giveUp, because a part of the store may stay away.
func (l *roll) settle(giveUp time.Time) {
	missing := l.grace - l.steady()
	if missing > 0 && time.Now().Before(giveUp) {
		l.loop.after(missing, func() { l.settle(giveUp) })
		return
	}
	l.book.Settle()
}
