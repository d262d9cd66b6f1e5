package sfu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// attachesUnconfirmed is true for a peer in the room, and where an attach only asks for a peer that is neither there nor expected.
func (r *room) attachesUnconfirmed(ctx context.Context, a attachment) bool {
	unconfirmed := false
	err := r.do(ctx, func() {
		p, here := r.peers[forward.PeerID(a.entry.GetId())]
		unconfirmed = here && !p.expected || !here && a.request.GetOnlyIfHere()
	})
	return err == nil && unconfirmed
}

// attach gives a peer to a stream. err: the room closed, or the pin must be confirmed first.
func (r *room) attach(ctx context.Context, a attachment) (s *session, refused *refusal, err error) {
	// The results are valid only if the task has run.
	done := r.do(ctx, func() {
		whole := false
		defer func() {
			if !whole {
				r.abandon(a)
			}
		}()
		s, refused, err = r.attachNow(a)
		whole = true
	})
	if errors.Is(done, errTaskBroke) {
		return nil, brokeRefusal(), nil
	}
	if done != nil {
		return nil, nil, done
	}
	return s, refused, err
}

func (r *room) attachNow(a attachment) (*session, *refusal, error) {
	if current := r.pin().Fence; a.pin.Fence.Less(current) {
		return nil, fenced(current), nil
	}
	p, here := r.peers[forward.PeerID(a.entry.GetId())]
	known := here && !p.expected
	switch {
	case r.moderation.removed[forward.PeerID(a.entry.GetId())]:
		return nil, removedRefusal(), nil
	case a.request.GetOnlyIfHere() && !here:
		return nil, notHere(), nil
	case known && a.request.GetGeneration() <= p.generation:
		return nil, refuse(control.Refusal_REFUSAL_STALE_GENERATION,
			"generation %d of this peer is attached, this is %d", p.generation, a.request.GetGeneration()), nil
	case !known && !a.confirmed:
		return nil, nil, errStranger
	case !known && !r.fits(a):
		return nil, refuse(control.Refusal_REFUSAL_ROOM_FULL, "the room has %d people, no more fit", len(r.peers)), nil
	}
	r.adopt(a.pin)
	resumed := known && p.mediaLives()
	if known {
		r.supersede(p)
		r.heed(p, a.entry)
	} else {
		p = r.welcome(a)
	}
	if !resumed && (a.request.GetKnownRoster() != 0 || len(a.request.GetExpected()) > 0) {
		p.came = true
	}
	p.generation, p.signaling = a.request.GetGeneration(), a.request.GetSignaling()
	p.canPublish, p.canSubscribe = a.request.GetCanPublish() && !a.entry.GetHidden(), a.request.GetCanSubscribe()
	p.sources, p.knowsScreenAudio = a.request.GetSources(), a.request.GetKnowsScreenAudio()
	p.knowsRosterChanges = a.request.GetKnowsRosterChanges()
	// Only now it is known what the peer may publish.
	r.note(p)
	r.expect(a.request.GetExpected())
	// The outbox comes this late because Attached must be the first event in it.
	p.outbox, p.deadline = newOutbox(), time.Time{}
	if p.connection == nil {
		p.path = a.request.GetPathBitsPerSecond()
	}
	attached := &control.Attached{Peer: string(p.id), Resumed: resumed, ChargedInReport: r.load.chargedIn, Egress: r.egress, PathBitsPerSecond: p.path, Limited: r.limited, TakesScreenAudio: true, WasHere: here}
	digest := a.request.GetKnownRoster()
	if attached.RosterKnown = digest != 0 && digest == r.version.digestFor(p, r.peers); !attached.RosterKnown {
		attached.Roster = r.peers.shownTo(p)
	}
	if !p.entry.GetHidden() {
		attached.Run = r.runID
	}
	if resumed {
		attached.Slots = slotsFor(p, r.media.Table(p.id))
	}
	r.send(p, &control.PeerEvent{Seq: r.version.seq, Event: &control.PeerEvent_Attached{Attached: attached}})
	r.tellMissed(p)
	if r.media.Lacks(p.id) != nil {
		r.news.slots(p.id)
	}
	r.log.Debug("peer attached", "peer", string(p.id), "generation", p.generation, "resumed", resumed)
	return &session{room: r, peer: p, outbox: p.outbox}, nil, nil
}

// supersede ends the stream of the signaling node that had the peer.
func (r *room) supersede(p *peer) {
	if p.outbox != nil {
		p.outbox.end(r.event(&control.PeerEvent{Event: &control.PeerEvent_Closed{Closed: &control.Closed{Reason: "superseded: a newer signaling node has the peer"}}}))
	}
	p.outbox = nil
}

// welcome puts a peer into the room: one that is new, or one that others have announced. What they remember of its hand, mutes and grant
// counts, unless it was changed here since.
func (r *room) welcome(a attachment) *peer {
	id := forward.PeerID(a.entry.GetId())
	p, expected := r.peers[id]
	before := a.entry
	if expected {
		before = p.entry
		keep(a.entry, before)
		if p.judged {
			a.entry.HandRaisedUnixMs = before.GetHandRaisedUnixMs()
		}
	} else {
		r.arrivals++
		p = &peer{id: id, joined: r.arrivals, chatFrom: r.lines.last}
	}
	r.moderation.heed(a.entry)
	p.entry, p.expected = a.entry, false
	r.lastHand = max(r.lastHand, p.entry.GetHandRaisedUnixMs())
	r.peers[id] = p
	delete(r.left, id)
	switch {
	case !expected:
		r.announce(p, &control.RosterChange{Change: &control.RosterChange_Joined{Joined: p.entry}})
	case !sameEntry(before, p.entry):
		r.announce(p, &control.RosterChange{Change: &control.RosterChange_Updated{Updated: p.entry}})
	}
	r.media.SetMuted(id, forward.SourceMicrophone, p.entry.GetAudioMuted())
	r.media.SetMuted(id, forward.SourceCamera, p.entry.GetVideoMuted())
	r.emptySince = time.Time{}
	r.count()
	return p
}

// expect takes in the people whom an arriving peer remembers from the room's former node. They have the grace time to come. What it
// remembers of people who are here already is restored.
func (r *room) expect(entries []*control.Peer) {
	now := time.Now()
	if now.Sub(r.load.opened) >= r.node.cfg.Grace {
		return
	}
	waiting := false
	for _, entry := range entries {
		id := forward.PeerID(entry.GetId())
		if p, known := r.peers[id]; known {
			r.recall(p, entry)
			continue
		}
		if r.left[id] || r.moderation.removed[id] || id == "" || entry.GetHidden() || !entryFits(entry) || len(r.peers) >= r.node.cfg.Limits.PeersPerRoom {
			continue
		}
		r.arrivals++
		p := &peer{id: id, joined: r.arrivals, entry: rosterCopy(entry), expected: true, came: true, chatFrom: r.lines.last, deadline: now.Add(r.node.cfg.Grace)}
		r.peers[id] = p
		r.lastHand = max(r.lastHand, p.entry.GetHandRaisedUnixMs())
		r.announce(p, &control.RosterChange{Change: &control.RosterChange_Joined{Joined: p.entry}})
		waiting = true
	}
	if waiting {
		r.after(r.node.cfg.Grace, r.expire)
	}
}

// remove ends a peer: its stream, its connection and its media.
func (r *room) remove(p *peer, why string) {
	delete(r.peers, p.id)
	p.gone.Store(true)
	if p.outbox != nil {
		p.outbox.end(nil)
		p.outbox = nil
	}
	if p.connection != nil {
		r.node.closeSoon(p.connection.Close)
	}
	r.media.RemovePeer(p.id)
	if time.Since(r.load.opened) < r.node.cfg.Grace && len(r.left) < r.node.cfg.Limits.PeersPerRoom {
		r.left[p.id] = true
	}
	r.announce(p, &control.RosterChange{Change: &control.RosterChange_Left{Left: string(p.id)}})
	r.log.Debug("peer removed", "peer", string(p.id), "why", why)
	r.count()
	r.settleIfAll()
	if r.peers.present() == 0 && r.emptySince.IsZero() {
		r.emptySince = time.Now()
		r.after(r.node.emptyGrace(), r.expire)
	}
}

// fits makes room for a peer that is not here, perhaps by giving an absent peer's place away. Two kinds need no free place: a peer that
// is expected has one already, and one that was in the room on another node comes along in the first grace time (of hidden people
// nobody knows that they are expected).
func (r *room) fits(a attachment) bool {
	id, most := forward.PeerID(a.entry.GetId()), r.node.cfg.Limits.PeersPerRoom
	_, expected := r.peers[id]
	comesAlong := a.request.GetKnownRoster() != 0 && !r.left[id] && time.Since(r.load.opened) < r.node.cfg.Grace
	if expected || comesAlong || len(r.peers) < most {
		return true
	}
	r.node.reached(r.id, limitPeople, fmt.Sprintf("%d people, --room-people", most))
	return len(r.peers) == most && r.vacate()
}

// vacate gives the place of an absent peer away, if there is one.
func (r *room) vacate() bool {
	leaving, places := r.peers.longestAway()
	if leaving == nil {
		return false
	}
	r.log.Info("place of an absent peer given away: the room is full", "peer", string(leaving.id), "places_of_the_identity", places)
	r.remove(leaving, "was away from a full room")
	return true
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
func (r *room) arrive(p *peer) {
	p.arrived = true
	switch r.arrival {
	case nobodyArrived:
		r.arrival = someArrived
		r.after(max(settleWithin-time.Since(r.load.opened), 0), r.settle)
	case someArrived:
	case settled:
		r.send(p, settledEvent())
		return
	}
	r.settleIfAll()
}

// settleIfAll ends the wait once everybody who comes from the former node has arrived.
func (r *room) settleIfAll() {
	if r.arrival != someArrived {
		return
	}
	for _, p := range r.peers {
		if p.came && !p.arrived {
			return
		}
	}
	r.settle()
}

// settle tells everybody that nobody needs the former node any more.
func (r *room) settle() {
	if r.arrival == settled {
		return
	}
	r.arrival = settled
	r.sendAll(settledEvent())
}

func settledEvent() *control.PeerEvent {
	return &control.PeerEvent{Event: &control.PeerEvent_Settled{Settled: &control.Settled{}}}
}
