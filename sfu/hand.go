package sfu

import (
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// hand leaves a raised hand where it is.
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
		// Last in line, even if the former node's clock was ahead.
		r.lastHand = max(time.Now().UnixMilli(), r.lastHand+1)
		entry.HandRaisedUnixMs = r.lastHand
	}
	if r.renew(p, entry) {
		r.tellSoon(p)
	}
}

// keep restores hand, mutes and grant.
func keep(entry, known *control.Peer) {
	if entry.GetIdentity() != known.GetIdentity() {
		return
	}
	if entry.GetHandRaisedUnixMs() == 0 {
		entry.HandRaisedUnixMs = known.GetHandRaisedUnixMs()
	}
	heedGrant(entry, known)
	entry.Silenced |= known.GetSilenced()
	for _, source := range forward.Sources() {
		if entry.GetSilenced()&bitOf(source) != 0 {
			setSilenced(entry, source)
		}
	}
}

// heed takes over a later word about a peer's grant, of its own signaling node or of others.
func (r *room) heed(p *peer, known *control.Peer) {
	if known.GetIdentity() != p.entry.GetIdentity() {
		return
	}
	entry := rosterCopy(p.entry)
	heedGrant(entry, known)
	if r.renew(p, entry) {
		r.tell(p)
	}
}

// recall restores a peer from others' memory, if its node and signaling node are new.
func (r *room) recall(p *peer, known *control.Peer) {
	r.heed(p, known)
	// Nearly always all: each arrival remembers everybody.
	has := p.entry
	if p.judged || has.GetHidden() || (known.GetHandRaisedUnixMs() == 0 || has.GetHandRaisedUnixMs() != 0) &&
		known.GetSilenced()&^(has.GetSilenced()|p.unmuted) == 0 {
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
	for _, source := range forward.Sources() {
		if (entry.GetSilenced()&^before)&bitOf(source) != 0 {
			r.tellSilenced(p, source, "")
		}
	}
	r.tell(p)
}
