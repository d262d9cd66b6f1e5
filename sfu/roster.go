package sfu

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/people/roster"
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
	case r.wasRemoved(a.entry.GetId()):
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
	r.adoptNow(a.pin)
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
	p.generation = a.request.GetGeneration()
	p.canPublish, p.canSubscribe = a.request.GetCanPublish() && !a.entry.GetHidden(), a.request.GetCanSubscribe()
	p.sources, p.knowsScreenAudio = a.request.GetSources(), a.request.GetKnowsScreenAudio()
	r.expect(a.request.GetExpected())
	p.outbox, p.deadline = newOutbox(), time.Time{} // not earlier: Attached comes first
	if p.connection == nil {
		p.path = a.request.GetPathBitsPerSecond()
	}
	attached := &control.Attached{Peer: string(p.id), Resumed: resumed, ChargedInReport: r.chargedIn, Egress: r.egress, PathBitsPerSecond: p.path, Limited: r.limited, TakesScreenAudio: true, WasHere: here}
	digest := a.request.GetKnownRoster()
	if attached.RosterKnown = digest != 0 && digest == r.digestFor(p); !attached.RosterKnown {
		attached.Roster = r.rosterFor(p)
	}
	if resumed {
		attached.Slots = slotsFor(p, r.media.Table(p.id))
	}
	r.send(p, &control.PeerEvent{Seq: r.seq, Event: &control.PeerEvent_Attached{Attached: attached}})
	r.tellMissed(p)
	if r.media.Lacks(p.id) != nil {
		r.news.slots(p.id)
	}
	r.log.Debug("peer attached", "peer", string(p.id), "generation", p.generation, "resumed", resumed)
	return &session{room: r, peer: p, outbox: p.outbox}, nil, nil
}

func (r *room) supersede(p *peer) {
	if p.outbox != nil {
		p.outbox.end(r.event(&control.PeerEvent{Event: &control.PeerEvent_Closed{Closed: &control.Closed{Reason: "superseded: a newer signaling node has the peer"}}}))
	}
	p.outbox = nil
}

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
		p = &peer{id: id, joined: r.arrivals, chatFrom: r.chatSeq}
	}
	heedGrant(a.entry, &control.Peer{GrantJudgedUnixMs: r.demoted[id]}) // also of who was gone in between
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

func (r *room) expect(entries []*control.Peer) {
	now := time.Now()
	if now.Sub(r.opened) >= r.node.cfg.Grace {
		return
	}
	waiting := false
	for _, entry := range entries {
		id := forward.PeerID(entry.GetId())
		if p, known := r.peers[id]; known {
			r.recall(p, entry)
			continue
		}
		if r.left[id] || r.removed[id] || id == "" || entry.GetHidden() || !entryFits(entry) || len(r.peers) >= r.node.cfg.Limits.PeersPerRoom {
			continue
		}
		r.arrivals++
		p := &peer{id: id, joined: r.arrivals, entry: rosterCopy(entry), expected: true, came: true, chatFrom: r.chatSeq, deadline: now.Add(r.node.cfg.Grace)}
		r.peers[id] = p
		r.lastHand = max(r.lastHand, p.entry.GetHandRaisedUnixMs())
		r.announce(p, &control.RosterChange{Change: &control.RosterChange_Joined{Joined: p.entry}})
		waiting = true
	}
	if waiting {
		r.after(r.node.cfg.Grace, r.expire)
	}
}

func (r *room) remove(p *peer, why string) {
	delete(r.peers, p.id)
	p.gone.Store(true)
	if p.outbox != nil {
		p.outbox.end(nil)
		p.outbox = nil
	}
	if p.connection != nil {
		r.node.closeSoon(p.connection.close)
	}
	r.media.RemovePeer(p.id)
	if time.Since(r.opened) < r.node.cfg.Grace && len(r.left) < r.node.cfg.Limits.PeersPerRoom {
		r.left[p.id] = true
	}
	r.announce(p, &control.RosterChange{Change: &control.RosterChange_Left{Left: string(p.id)}})
	r.log.Debug("peer removed", "peer", string(p.id), "why", why)
	r.count()
	r.settleIfAll()
	if r.present() == 0 && r.emptySince.IsZero() {
		r.emptySince = time.Now()
		r.after(r.node.emptyGrace(), r.expire)
	}
}

// present leaves out who is only expected.
func (r *room) present() int {
	count := 0
	for _, p := range r.peers {
		if !p.expected {
			count++
		}
	}
	return count
}

func (r *room) count() {
	connected := 0
	for _, p := range r.peers {
		if p.connected {
			connected++
		}
	}
	r.peerCount.Store(int64(r.present()))
	r.connected.Store(int64(connected))
}

// announce tells everybody; of a hidden p only p.
func (r *room) announce(p *peer, change *control.RosterChange) {
	r.note(p)
	if p.entry.GetHidden() {
		r.send(p, &control.PeerEvent{Seq: r.seq, Event: &control.PeerEvent_RosterChange{RosterChange: change}})
		return
	}
	r.seq++
	for _, p := range r.peers {
		r.send(p, &control.PeerEvent{Seq: r.seq, Event: &control.PeerEvent_RosterChange{RosterChange: change}})
	}
}

// A peer is present in the grace time and while expected.
func (r *room) note(p *peer) {
	if !p.gone.Load() {
		r.book.Put(roster.Peer{ID: string(p.id), Identity: p.entry.GetIdentity(), Name: p.entry.GetName(), Hidden: p.entry.GetHidden()})
		return
	}
	lastSeen := time.Now()
	if !p.deadline.IsZero() {
		lastSeen = p.deadline.Add(-r.node.cfg.Grace)
	}
	r.book.Drop(string(p.id), lastSeen)
}

// rosterFor is what viewer may see, with expected people, by arrival.
func (r *room) rosterFor(viewer *peer) []*control.Peer {
	peers := make([]*peer, 0, len(r.peers))
	for _, p := range r.peers {
		if p == viewer || !p.entry.GetHidden() {
			peers = append(peers, p)
		}
	}
	slices.SortFunc(peers, func(a, b *peer) int { return cmp.Compare(a.joined, b.joined) })
	entries := make([]*control.Peer, 0, len(peers))
	for _, p := range peers {
		entries = append(entries, p.entry)
	}
	return entries
}

// Without hidden people it is computed once per change.
func (r *room) digestFor(viewer *peer) uint64 {
	if viewer.entry.GetHidden() {
		return control.RosterDigest(r.rosterFor(viewer))
	}
	if r.digest == 0 || r.digestSeq != r.seq {
		r.digest, r.digestSeq = control.RosterDigest(r.rosterFor(viewer)), r.seq
	}
	return r.digest
}

// size counts who is expected, and nobody hidden, as signaling nodes do for their clients' rooms.
func (r *room) size() *control.RoomSize {
	size := &control.RoomSize{Expected: uint32(min(max(r.people, 0), headroom.MaxPeople)), Egress: r.egress}
	one := map[bool]uint32{true: 1}
	for _, p := range r.peers {
		if e := p.entry; !e.GetHidden() {
			size.People++
			size.Cameras += one[!e.GetVideoMuted()] + one[e.GetScreenShared()]
			size.Microphones += one[!e.GetAudioMuted()] + one[e.GetScreenAudio()]
		}
	}
	return size
}

// unplaced, unless nil, gets streams without a track.
func (r *room) held(ctx context.Context, unplaced map[string][]*control.Stream) (*control.HeldRoom, error) {
	stats := r.media.Stats()
	// The kernel's refusals could be anybody's: each room counts them.
	refused := r.node.socket.Stats().Refused - r.refusedBefore
	answer := &control.HeldRoom{
		Room: string(r.id), PacketsForwarded: stats.PacketsForwarded, PacketsDropped: stats.Drops.Total() + refused,
		PacketsLate: stats.Drops.Late,
	}
	err := r.do(ctx, func() {
		answer.Pin, answer.Size = control.PinProto(r.pin()), r.size()
		for _, p := range r.peers {
			if p.expected {
				continue
			}
			answer.Peers = append(answer.Peers, &control.HeldPeer{
				Id: string(p.id), Identity: p.entry.GetIdentity(), Attached: p.outbox != nil, Connected: p.connected, Offers: p.offers,
			})
			if unplaced != nil && p.connection != nil {
				unplaced[string(p.id)] = p.connection.uplink.homeless()
			}
		}
	})
	return answer, err
}
