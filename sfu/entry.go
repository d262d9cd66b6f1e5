package sfu

import (
	"maps"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/sources"
)

const (
	// maxNameBytes bounds the name of a room, a peer or an identity.
	maxNameBytes = 512
	// maxEntryBytes bounds a roster entry, which everybody receives.
	maxEntryBytes = 8 << 10
)

func entryFits(p *control.Peer) bool {
	return len(p.GetId()) <= maxNameBytes && len(p.GetIdentity()) <= maxNameBytes && len(p.GetName()) <= maxNameBytes &&
		len(p.GetMetadata())+attributeBytes(p) <= maxEntryBytes
}

func attributeBytes(p *control.Peer) (bytes int) {
	for key, value := range p.GetAttributes() {
		bytes += len(key) + len(value)
	}
	return bytes
}

// rosterCopy has only the fields that clients may be told.
func rosterCopy(entry *control.Peer) *control.Peer {
	return &control.Peer{
		Id: entry.GetId(), Identity: entry.GetIdentity(), Name: entry.GetName(),
		AudioMuted: entry.GetAudioMuted(), VideoMuted: entry.GetVideoMuted(), ScreenShared: entry.GetScreenShared(), Hidden: entry.GetHidden(),
		ScreenAudio: entry.GetScreenAudio(), HandRaisedUnixMs: entry.GetHandRaisedUnixMs(), Silenced: entry.GetSilenced(), Moderator: entry.GetModerator(),
		GrantJudgedUnixMs: entry.GetGrantJudgedUnixMs(), Metadata: entry.GetMetadata(), Attributes: entry.GetAttributes(),
		Unlisted: entry.GetUnlisted(),
	}
}

func sameEntry(a, b *control.Peer) bool {
	return a.GetId() == b.GetId() && a.GetUnlisted() == b.GetUnlisted() && a.GetIdentity() == b.GetIdentity() && a.GetName() == b.GetName() &&
		a.GetAudioMuted() == b.GetAudioMuted() && a.GetVideoMuted() == b.GetVideoMuted() &&
		a.GetScreenShared() == b.GetScreenShared() && a.GetScreenAudio() == b.GetScreenAudio() && a.GetHandRaisedUnixMs() == b.GetHandRaisedUnixMs() &&
		a.GetSilenced() == b.GetSilenced() && a.GetModerator() == b.GetModerator() &&
		a.GetGrantJudgedUnixMs() == b.GetGrantJudgedUnixMs() && a.GetMetadata() == b.GetMetadata() && maps.Equal(a.GetAttributes(), b.GetAttributes())
}

// setMuted notes whether a source is muted, in an entry that nobody has yet.
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

// setSilenced mutes a source for a moderator, in an entry that nobody has yet. A screen is muted with its sound.
func setSilenced(entry *control.Peer, source forward.Source) {
	setMuted(entry, source, true)
	if source == forward.SourceScreen {
		setMuted(entry, forward.SourceScreenAudio, true)
	}
	entry.Silenced |= sources.Bit(source)
}

// heedGrant changes an entry that nobody has yet to the later of two words about the grant. Of two tokens, either is enough.
func heedGrant(entry, other *control.Peer) {
	switch mine, theirs := entry.GetGrantJudgedUnixMs(), other.GetGrantJudgedUnixMs(); {
	case theirs > mine:
		entry.Moderator, entry.GrantJudgedUnixMs = other.GetModerator(), theirs
	case theirs == 0 && mine == 0:
		entry.Moderator = entry.GetModerator() || other.GetModerator()
	}
}
