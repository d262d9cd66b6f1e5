package sfu

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// attachesUnconfirmed is true for a peer in the room, and where an attach only asks for a peer that is neither there nor expected.
func (r *room) attachesUnconfirmed(ctx context.Context, a attachment) bool {
	unconfirmed := false
	err := r.do(ctx, func() {
		r.becomeOwner()
		unconfirmed = r.people.attachesUnconfirmed(a)
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
	r.becomeOwner()
	if current := r.pin().Fence; a.pin.Fence.Less(current) {
		return nil, fenced(current), nil
	}
	p, here := r.peers[forward.PeerID(a.entry.GetId())]
	known := here && !p.expected
	if r.members.owner != nil && a.entered == nil && (!known || p.place != nil) {
		return nil, nil, errStranger
	}
	switch {
	case r.acts.moderation.removed[forward.PeerID(a.entry.GetId())]:
		return nil, removedRefusal(), nil
	case a.request.GetOnlyIfHere() && !here:
		return nil, notHere(), nil
	case known && a.request.GetGeneration() <= p.generation:
		return nil, refuse(control.Refusal_REFUSAL_STALE_GENERATION,
			"generation %d of this peer is attached, this is %d", p.generation, a.request.GetGeneration()), nil
	case a.entered != nil:
		p = r.people.admit(p, a.entered)
		known = true
	case !known && !a.confirmed:
		return nil, nil, errStranger
	case !known && !r.people.fits(a):
		return nil, refuse(control.Refusal_REFUSAL_ROOM_FULL, "the room has %d people, no more fit", len(r.peers)), nil
	}
	if to, err := r.spreading.sendElsewhere(p, a); err != nil || to != nil {
		return nil, to.refusal(), err
	}
	r.adopt(a.pin)
	resumed := known && p.mediaLives()
	if known {
		r.people.takeBack(p, a.request.GetGeneration())
		r.teller.supersede(p)
		r.acts.heed(p, a.entry)
	} else {
		p = r.people.welcome(a)
	}
	if !resumed && (a.request.GetKnownRoster() != 0 || len(a.request.GetExpected()) > 0) {
		p.came = true
	}
	p.take(a.request)
	r.state.heed(a.request.GetSettings())
	// Only now it is known what the peer may publish.
	r.roll.noteAttached(p)
	r.people.expect(a.request.GetExpected())
	// The outbox comes this late because Attached must be the first event in it.
	p.outbox, p.deadline, p.sentAway = newOutbox(), time.Time{}, false
	if p.connection == nil {
		p.path = a.request.GetPathBitsPerSecond()
	}
	attached := r.attached(p, a.request.GetKnownRoster(), resumed)
	attached.WasHere, attached.Continues = here, !resumed && a.continuing != nil
	r.teller.send(p, &control.PeerEvent{Seq: r.roll.version.seq, Event: &control.PeerEvent_Attached{Attached: attached}})
	r.tellPresent(p)
	r.teller.tellAway(p, false)
	r.count()
	r.log.Debug("peer attached", "peer", string(p.id), "generation", p.generation, "resumed", resumed)
	return &session{room: r, peer: p, outbox: p.outbox}, nil, nil
}

// tellPresent tells a peer's signaling node what it missed, or never heard.
func (r *room) tellPresent(p *peer) {
	r.acts.tellGranted(p)
	r.teller.rests(p)
	r.acts.tellMissed(p)
	if r.media.Lacks(p.id) != nil {
		r.news.slots(p.id)
	}
}

// attached is what the signaling node of a peer is told first.
func (r *room) attached(p *peer, digest uint64, resumed bool) *control.Attached {
	attached := &control.Attached{
		Peer: string(p.id), Resumed: resumed, ChargedInReport: r.load.chargedIn, Egress: r.egress, PathBitsPerSecond: p.path, Limited: r.limited,
		TakesScreenAudio: true, TakesData: true, RoomState: r.state.proto(), Standby: r.toldStandby,
	}
	if attached.RosterKnown = digest != 0 && digest == r.roll.version.digestFor(p, r.peers); !attached.RosterKnown {
		attached.Roster = r.peers.shownTo(p)
	}
	if !p.entry.GetHidden() {
		attached.Run = r.roll.run
	}
	if attached.Audience = r.roll.audience.told; p.entry.GetUnlisted() {
		attached.Own = p.entry
	}
	if resumed {
		attached.Slots = slotsFor(p, r.media.Table(p.id))
	}
	return attached
}
