package sfu

import (
	"time"
	"unicode/utf8"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// muteEvery bounds how often the others are told that one person muted or unmuted.
const muteEvery = 200 * time.Millisecond

// mute notes that a person muted a source, and tells the others if it shows.
func (r *room) mute(p *peer, message *control.Mute) {
	source, ok := sourceOf(message.GetSource())
	if !ok {
		return
	}
	r.media.SetMuted(p.id, source, message.GetMuted())
	entry := rosterCopy(p.entry)
	setMuted(entry, source, message.GetMuted())
	if !message.GetMuted() {
		entry.Silenced &^= bitOf(source)
		p.unmuted |= bitOf(source)
	}
	if r.renew(p, entry) {
		r.tellSoon(p)
	}
}

// setMuted changes an entry that nobody has yet.
func setMuted(entry *control.Peer, source forward.Source, muted bool) {
	switch source {
	case forward.SourceMicrophone:
		entry.AudioMuted = muted
	case forward.SourceCamera:
		entry.VideoMuted = muted
	case forward.SourceScreen:
		entry.ScreenShared = !muted
	}
}

// renew replaces a peer's entry and reports whether it is another one.
func (r *room) renew(p *peer, entry *control.Peer) bool {
	if sameEntry(entry, p.entry) {
		return false
	}
	if entry.GetSilenced() != p.entry.GetSilenced() && p.connection != nil {
		p.connection.uplink.silence(entry.GetSilenced())
	}
	p.entry = entry
	return true
}

// rename changes what a person is shown as, and tells the others. Signaling nodes say what may be shown; what does not fit is dropped.
func (r *room) rename(p *peer, name string) {
	entry := rosterCopy(p.entry)
	entry.Name = name
	if name != "" && utf8.ValidString(name) && entryFits(entry) && r.renew(p, entry) {
		r.tellSoon(p)
	}
}

// tellSoon tells the others of a peer's entry: now, or, when they were told of another a
// moment ago, at the end of that moment what it is then.
func (r *room) tellSoon(p *peer) {
	if p.telling {
		return
	}
	wait := muteEvery - time.Since(p.toldAt)
	if wait <= 0 {
		r.tell(p)
		return
	}
	p.telling = true
	r.after(wait, func() {
		p.telling = false
		if !p.gone && (p.told == nil || !sameEntry(p.told, p.entry)) {
			r.tell(p)
		}
	})
}

// tell announces a peer's entry as it is.
func (r *room) tell(p *peer) {
	p.told, p.toldAt = p.entry, time.Now()
	r.announce(p, &control.RosterChange{Change: &control.RosterChange_Updated{Updated: p.entry}})
}
