package sfu

import (
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// hand raises or lowers a peer's hand. One that is raised keeps its place.
func (r *room) hand(p *peer, raised bool) {
	if p.entry.GetHidden() {
		return
	}
	p.judged = true
	entry := rosterCopy(p.entry)
	switch {
	case !raised:
		entry.HandRaisedUnixMs = 0
	case entry.GetHandRaisedUnixMs() == 0:
		// Behind everybody's, also if the node before had a clock that is ahead.
		r.lastHand = max(time.Now().UnixMilli(), r.lastHand+1)
		entry.HandRaisedUnixMs = r.lastHand
	}
	if r.renew(p, entry) {
		r.tellSoon(p)
	}
}

// keep gives an entry what the room knew of the same person: the hand, who silenced it, the grant.
func keep(entry, known *control.Peer) {
	if entry.GetIdentity() != known.GetIdentity() {
		return
	}
	if entry.GetHandRaisedUnixMs() == 0 {
		entry.HandRaisedUnixMs = known.GetHandRaisedUnixMs()
	}
	entry.Moderator = entry.GetModerator() || known.GetModerator()
	entry.Silenced |= known.GetSilenced()
	for _, source := range []forward.Source{forward.SourceMicrophone, forward.SourceCamera, forward.SourceScreen} {
		if entry.GetSilenced()&bitOf(source) != 0 {
			setMuted(entry, source, true)
		}
	}
}

// recall takes over what others remember of a peer that came to a new node before them, from a signaling node that was new too.
func (r *room) recall(p *peer, known *control.Peer) {
	// Everybody who arrives remembers everybody: nearly always this is all.
	has := p.entry
	if p.judged || has.GetHidden() || (known.GetHandRaisedUnixMs() == 0 || has.GetHandRaisedUnixMs() != 0) &&
		(!known.GetModerator() || has.GetModerator()) && known.GetSilenced()&^(has.GetSilenced()|p.unmuted) == 0 {
		return
	}
	entry, before := rosterCopy(p.entry), p.entry.GetSilenced()
	known = rosterCopy(known)
	known.Silenced &^= p.unmuted
	keep(entry, known)
	r.lastHand = max(r.lastHand, entry.GetHandRaisedUnixMs())
	if !r.renew(p, entry) {
		return
	}
	for _, source := range []forward.Source{forward.SourceMicrophone, forward.SourceCamera, forward.SourceScreen} {
		if (entry.GetSilenced()&^before)&bitOf(source) != 0 {
			r.tellSilenced(p, source, "")
		}
	}
	r.tell(p)
}
