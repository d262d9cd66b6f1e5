package sfu

import (
	"time"
	"unicode/utf8"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

const muteEvery = 200 * time.Millisecond

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
	case forward.SourceScreenAudio:
		entry.ScreenAudio = !muted
	}
}

// A screen is silenced with its sound.
func setSilenced(entry *control.Peer, source forward.Source) {
	setMuted(entry, source, true)
	if source == forward.SourceScreen {
		setMuted(entry, forward.SourceScreenAudio, true)
	}
	entry.Silenced |= bitOf(source)
}

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

func (r *room) rename(p *peer, name string) {
	entry := rosterCopy(p.entry)
	entry.Name = name
	if name != "" && utf8.ValidString(name) && entryFits(entry) && r.renew(p, entry) {
		r.tellSoon(p)
	}
}

// tellSoon tells the others of an entry at once, or what it is at the end of muteEvery.
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
		if !p.gone.Load() && (p.told == nil || !sameEntry(p.told, p.entry)) {
			r.tell(p)
		}
	})
}

func (r *room) tell(p *peer) {
	p.told, p.toldAt = p.entry, time.Now()
	r.announce(p, &control.RosterChange{Change: &control.RosterChange_Updated{Updated: p.entry}})
}
