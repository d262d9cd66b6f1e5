package signaling

import (
	"reflect"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/replica"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// memory is what a session can tell a new node, bounded by the limits of messages.
type memory struct {
	roster   *replica.Roster
	audience audience
	run      *replica.Run // nil: not told
	seq      uint64       // of the last change of the roster that the client was told
	egress   *control.Egress
	limited  bool // as told to the client
	// roomMetadata is nil while it is not known.
	roomMetadata *string
	path         uint64 // bits per second, from a media node; 0: unlimited
	slots        []*control.Slot
	lacks        []*control.Lack
	muted        map[wire.Source]bool
	unsaid       map[wire.Source]bool // said without a link
	hand         *wire.Hand           // likewise
	view         *wire.View
	unanswered   *wire.Offer
	offered      bool // under this pin
}

func (s *session) setRoster(roster *replica.Roster) {
	s.known.roster = roster
	room := s.expect()
	s.seat.load.Store(&room)
}

func (s *session) setEgress(sent *control.Egress) {
	if sent == nil {
		return
	}
	s.known.egress = sent
	room := s.expect()
	s.seat.load.Store(&room)
}

func (s *session) setLimited(limited bool) {
	if s.known.limited == limited {
		return
	}
	s.known.limited = limited
	s.socket.send(&wire.Limited{Limited: limited, Epoch: s.pin.Fence.Epoch})
}

// expect is the room as known: people with what they have on, expected ones with everything, measured egress.
func (s *session) expect() headroom.Room {
	room := headroom.Room{People: len(s.known.roster.Peers()) + int(s.known.audience.people), Unreserved: s.unreserved, Running: s.place != (sfulink.Place{}) || s.resumes}
	room.Cameras, room.Microphones = s.known.roster.On()
	room = room.AtLeast(max(s.who.ExpectedSize, s.server.config.ExpectedSize))
	if s.known.egress != nil {
		room.Measured, room.Sent = true, s.known.egress.Value()
	}
	return room
}

func (m *memory) expected() []*control.Peer {
	visible := make([]*control.Peer, 0, len(m.roster.Peers()))
	for _, p := range m.roster.Peers() {
		if !p.GetHidden() { // oneself: told to nobody
			visible = append(visible, p)
		}
	}
	return control.Expected(visible)
}

func (m *memory) shares(source wire.Source) bool {
	muted, said := m.muted[source]
	return said && !muted
}

// shows reports whether the others see a camera or a screen of the person.
func (m *memory) shows(who access.Session) bool {
	camera := !m.muted[wire.SourceCamera] && mayPublish(who, wire.SourceCamera)
	return camera || m.shares(wire.SourceScreen)
}

func (m *memory) mute(source wire.Source, muted bool) {
	if m.muted == nil {
		m.muted, m.unsaid = make(map[wire.Source]bool), make(map[wire.Source]bool)
	}
	m.muted[source] = muted
}

var errNotPublished = fault.Denied("the token does not allow publishing this source (canPublish, canPublishSources)")

func bitOf(source wire.Source) access.Sources {
	switch source {
	case wire.SourceMicrophone:
		return access.Microphone
	case wire.SourceCamera:
		return access.Camera
	case wire.SourceScreenAudio:
		return access.ScreenAudio
	default:
		return access.Screen
	}
}

// The media node checks what is really sent.
func mayPublish(who access.Session, source wire.Source) bool {
	return who.CanPublish && who.Sources.Allows(bitOf(source))
}

func permissionsOf(who access.Session) wire.Permissions {
	p := wire.Permissions{Publish: who.CanPublish, Subscribe: who.CanSubscribe, Chat: who.CanChat, Rename: who.CanRename, Watch: who.CanWatch, Moderate: who.CanModerate, Message: messageScope(who)}
	if who.Sources == 0 {
		return p
	}
	for _, source := range wire.Sources() {
		if who.Sources.Allows(bitOf(source)) {
			p.Sources = append(p.Sources, source)
		}
	}
	return p
}

// The room's node decides a session's grant, and what a moderator muted. Resume tokens and `repeat` follow it.

// followGrant tells the client of a changed grant.
func (s *session) followGrant(before bool) {
	now := s.known.ownEntry(s.who.Peer).GetModerator()
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

// granted takes what an application has changed of the person. It is told again after each attach, so most often nothing is new.
func (s *session) granted(now *control.Granted) {
	who := s.who
	who.Name, who.Metadata, who.Attributes = now.GetName(), now.GetMetadata(), now.GetAttributes()
	if may := now.GetPermission(); may != nil {
		who.CanPublish, who.Sources = may.GetCanPublish() && !who.Hidden, access.Sources(may.GetSources())
		who.CanChat, who.CanRename = may.GetCanChat() && !who.Hidden, may.GetCanRename()
	}
	if reflect.DeepEqual(who, s.who) {
		return
	}
	s.who = who
	for _, source := range wire.Sources() {
		if !mayPublish(who, source) {
			s.known.mute(source, true)
		}
	}
	s.seat.shown.Store(s.known.shows(s.who))
	token, err := s.seal()
	if err != nil {
		s.log.Error("client not told of what an application changed", "error", err)
		return
	}
	s.socket.send(&wire.PermissionsChanged{Permissions: permissionsOf(s.who), Resume: token})
}

// roomState takes what a media node says of the room itself, and reports whether that is new.
func (m *memory) roomState(now *control.RoomState) bool {
	if now == nil {
		return false
	}
	metadata := now.GetMetadata()
	changed := m.roomMetadata == nil && metadata != "" || m.roomMetadata != nil && *m.roomMetadata != metadata
	m.roomMetadata = &metadata
	return changed
}

func (s *session) roomChanged(now *control.RoomState) {
	if s.known.roomState(now) {
		s.socket.send(&wire.RoomUpdated{Metadata: now.GetMetadata(), Epoch: s.pin.Fence.Epoch})
	}
}

func (s *session) silenced(source wire.Source, by string) {
	if source == "" {
		return
	}
	s.known.mute(source, true)
	s.seat.shown.Store(s.known.shows(s.who))
	s.socket.send(&wire.MutedBy{Source: source, By: by, Epoch: s.pin.Fence.Epoch})
}

// heedSilenced is what a moderator muted without a link, unless the client unmuted it since.
func (m *memory) heedSilenced(peer string) (sources []wire.Source) {
	for _, source := range sourcesOf(m.ownEntry(peer).GetSilenced()) {
		if !m.muted[source] && !m.unsaid[source] {
			m.mute(source, true)
			sources = append(sources, source)
		}
	}
	return sources
}

// stillSilenced leaves out what the client has unmuted.
func (m *memory) stillSilenced(peer string) (set uint32) {
	for _, source := range sourcesOf(m.ownEntry(peer).GetSilenced()) {
		if m.muted[source] {
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

// answered forgets the offer that has an answer.
func (m *memory) answered(id string) {
	if m.unanswered != nil && m.unanswered.ID == id {
		m.unanswered = nil
	}
}
