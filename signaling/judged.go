package signaling

import (
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// What the room's node says of this session's own entry: the node, which has the room, is right about the grant and
// about what a moderator muted; resume tokens and `repeat` follow it.

// own is the session's own entry, nil if it is not known.
func (s *session) own() *control.Peer {
	for _, p := range s.known.roster {
		if p.GetId() == s.who.Peer {
			return p
		}
	}
	return nil
}

// followGrant takes over the entry's grant where it differs from before, and tells the client.
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

// silenced notes that a moderator muted the client, and tells it.
func (s *session) silenced(source wire.Source, by string) {
	if source == "" {
		return
	}
	s.known.mute(source, true)
	s.shown.Store(s.shows())
	s.socket.send(&wire.MutedBy{Source: source, By: by, Epoch: s.pin.Fence.Epoch})
}

// heedSilenced notes and returns what a moderator muted while this node had no link, unless the client has unmuted it since.
func (s *session) heedSilenced() (sources []wire.Source) {
	for _, source := range sourcesOf(s.own().GetSilenced()) {
		if !s.known.muted[source] && !s.known.unsaid[source] {
			s.known.mute(source, true)
			sources = append(sources, source)
		}
	}
	return sources
}

// stillSilenced is the entry's set without what the client has unmuted.
func (s *session) stillSilenced() (set uint32) {
	for _, source := range sourcesOf(s.own().GetSilenced()) {
		if s.known.muted[source] {
			set |= uint32(bitOf(source))
		}
	}
	return set
}

func sourcesOf(set uint32) (sources []wire.Source) {
	for _, source := range []wire.Source{wire.SourceMicrophone, wire.SourceCamera, wire.SourceScreen} {
		if set&uint32(bitOf(source)) != 0 {
			sources = append(sources, source)
		}
	}
	return sources
}
