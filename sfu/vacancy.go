package sfu

// vacate frees a place in a full room, if it can: that of a peer without a signaling node and a connected transport. The identity
// with most such places loses one first, so that dropping sockets fills no room; then who has been away longest.
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

// away reports whether nothing of a peer is here: neither its signaling node nor its media.
func (p *peer) away() bool { return !p.expected && p.outbox == nil && !p.connected }
