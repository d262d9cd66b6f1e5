package sfu

import (
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// fits makes room for a peer that is not here, perhaps by vacate. Who is expected has a place already.
func (r *room) fits(a attachment) bool {
	_, expected := r.peers[forward.PeerID(a.entry.GetId())]
	most := r.node.cfg.Limits.PeersPerRoom
	return expected || len(r.peers) < most || r.comesAlong(a) || len(r.peers) == most && r.vacate()
}

// comesAlong: the peer was in the room on another node. The hidden are expected by nobody.
func (r *room) comesAlong(a attachment) bool {
	return a.request.GetKnownRoster() != 0 && !r.left[forward.PeerID(a.entry.GetId())] && time.Since(r.opened) < r.node.cfg.Grace
}

// vacate removes an absent peer, first of the identity with most such places, so that dropped sockets fill no room.
func (r *room) vacate() bool {
	away := map[string]int{}
	for _, p := range r.peers {
		if p.away() {
			away[p.entry.GetIdentity()]++
		}
	}
	var leaving *peer
	for _, p := range r.peers {
		if !p.away() {
			continue
		}
		if leaving == nil {
			leaving = p
			continue
		}
		mine, other := away[p.entry.GetIdentity()], away[leaving.entry.GetIdentity()]
		if mine > other || mine == other && p.deadline.Before(leaving.deadline) {
			leaving = p
		}
	}
	if leaving == nil {
		return false
	}
	r.log.Info("place of an absent peer given away: the room is full", "peer", string(leaving.id), "places_of_the_identity", away[leaving.entry.GetIdentity()])
	r.remove(leaving, "was away from a full room")
	return true
}

func (p *peer) away() bool { return !p.expected && p.outbox == nil && !p.connected }
