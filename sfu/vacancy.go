package sfu

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
