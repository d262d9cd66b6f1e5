package signaling

import (
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// The room's node decides a session's grant, and what a moderator muted. Resume tokens and `repeat` follow it.

// own is nil if it is unknown.
func (s *session) own() *control.Peer {
	for _, p := range s.known.roster {
		if p.GetId() == s.who.Peer {
			return p
		}
	}
	return nil
}

// followGrant tells the client of a changed grant.
func (s *session) followGrant(before bool) {
	now := s.own().GetModerator()
	if now == before || now == s.who.CanModerate {
		return
	}
	s.who.CanModerate = now
	token, err := s.seal()
	if err != nil {
		s.log.Error("client not told of its grant", "error", err)
		return
	}
	s.socket.send(&wire.PermissionsChanged{Permissions: permissionsOf(s.who), Resume: token})
}

func (s *session) silenced(source wire.Source, by string) {
	if source == "" {
		return
	}
	s.known.mute(source, true)
	s.shown.Store(s.shows())
	s.socket.send(&wire.MutedBy{Source: source, By: by, Epoch: s.pin.Fence.Epoch})
}

// heedSilenced is what a moderator muted without a link, unless the client unmuted it since.
func (s *session) heedSilenced() (sources []wire.Source) {
	for _, source := range sourcesOf(s.own().GetSilenced()) {
		if !s.known.muted[source] && !s.known.unsaid[source] {
			s.known.mute(source, true)
			sources = append(sources, source)
		}
	}
	return sources
}

// stillSilenced leaves out what the client has unmuted.
func (s *session) stillSilenced() (set uint32) {
	for _, source := range sourcesOf(s.own().GetSilenced()) {
		if s.known.muted[source] {
			set |= uint32(bitOf(source))
		}
	}
	return set
}

func sourcesOf(set uint32) (sources []wire.Source) {
	for _, source := range wire.Sources() {
		if set&uint32(bitOf(source)) != 0 {
			sources = append(sources, source)
		}
	}
	return sources
}
