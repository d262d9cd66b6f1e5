package sfu

import (
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
)

const (
	// A room of more people than these tells what changed at most once in gatherFor. A smaller one tells each change at once.
	gatherFrom = 100
	gatherFor  = 250 * time.Millisecond
)

// rosterChanges are the changes of the roster that have not been told, at most one for each peer, in the order in which they were made.
// The room's loop owns it.
type rosterChanges struct {
	untold []*control.RosterChange
	toldAt time.Time
	// planned says that the untold ones will be told.
	planned bool
}

// add takes in the latest change of a peer. One that joined and was not told of stays one that joined.
func (c *rosterChanges) add(change *control.RosterChange) {
	id := changedPeer(change)
	joined := false
	c.untold = slices.DeleteFunc(c.untold, func(former *control.RosterChange) bool {
		same := changedPeer(former) == id
		joined = joined || same && former.GetJoined() != nil
		return same
	})
	if updated := change.GetUpdated(); updated != nil && joined {
		change = &control.RosterChange{Change: &control.RosterChange_Joined{Joined: updated}}
	}
	c.untold = append(c.untold, change)
}

// due returns how long a room of so many people waits for further changes; zero or less: not at all.
func (c *rosterChanges) due(people int, now time.Time) time.Duration {
	if people <= gatherFrom {
		return 0
	}
	return gatherFor - now.Sub(c.toldAt)
}

// take returns the untold changes, encoded.
func (c *rosterChanges) take(now time.Time) ([]byte, error) {
	untold := c.untold
	c.untold, c.toldAt, c.planned = nil, now, false
	return control.EncodeRosterChanges(untold)
}

func changedPeer(change *control.RosterChange) string {
	switch {
	case change.GetJoined() != nil:
		return change.GetJoined().GetId()
	case change.GetUpdated() != nil:
		return change.GetUpdated().GetId()
	default:
		return change.GetLeft()
	}
}

// announce tells everybody of a change of the roster, in a large room together with others. Of a hidden peer only the peer itself is told.
func (r *room) announce(p *peer, change *control.RosterChange) {
	r.note(p)
	if p.entry.GetHidden() {
		// What waits comes first, since it has this number or a lower one.
		r.tellChanges()
		r.send(p, &control.PeerEvent{Seq: r.version.seq, Event: &control.PeerEvent_RosterChange{RosterChange: change}})
		return
	}
	r.version.seq++
	r.changes.add(change)
	r.tellOlder(&control.PeerEvent{Seq: r.version.seq, Event: &control.PeerEvent_RosterChange{RosterChange: change}})
	r.tellChangesSoon()
}

func (r *room) tellChangesSoon() {
	if r.changes.planned {
		return
	}
	wait := r.changes.due(len(r.peers), time.Now())
	if wait <= 0 {
		r.tellChanges()
		return
	}
	r.changes.planned = true
	r.after(wait, func() {
		if r.changes.planned {
			r.tellChanges()
		}
	})
}

// tellChanges tells everybody what changed since the last time, in one event that is encoded once.
func (r *room) tellChanges() {
	if len(r.changes.untold) == 0 {
		return
	}
	encoded, err := r.changes.take(time.Now())
	if err != nil {
		r.log.Error("changes of the roster are not encoded: everybody's stream ends", "error", err)
	}
	event := r.event(&control.PeerEvent{Seq: r.version.seq, Event: &control.PeerEvent_RosterChanges{RosterChanges: encoded}})
	for _, p := range r.peers {
		switch {
		case !p.knowsRosterChanges:
		case err != nil && p.outbox != nil:
			p.outbox.end(nil)
			r.detach(p)
		default:
			r.queue(p, event)
		}
	}
}

// tellOlder tells those whose signaling node does not know events of many changes.
func (r *room) tellOlder(event *control.PeerEvent) {
	event = r.event(event)
	for _, p := range r.peers {
		if !p.knowsRosterChanges {
			r.queue(p, event)
		}
	}
}
