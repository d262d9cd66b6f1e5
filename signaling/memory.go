package signaling

import (
	"slices"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// maxExpected bounds the roster that is handed to a room's new node. Without their
// metadata 1000 entries are about 200 KiB; a control message takes 1 MiB.
const maxExpected = 1000

// memory is what a session remembers of its room and client, so that it can tell
// a new node. It is bounded by the limits of the messages it comes from.
type memory struct {
	roster     []*control.Peer
	egress     *control.Egress // of the room, as an owner measured it last; nil before
	slots      []*control.Slot
	muted      map[wire.Source]bool // as the client said last
	view       *wire.View           // nil until the client says one
	unanswered *wire.Offer          // the client's latest offer, until it is answered
	offered    bool                 // the client has offered under this pin
}

// setRoster replaces what is known of the room's people.
func (s *session) setRoster(peers []*control.Peer) {
	s.known.roster = peers
	room := s.expect()
	s.room.Store(&room)
}

// setEgress notes what the room's owner measured.
func (s *session) setEgress(sent *control.Egress) {
	if sent == nil {
		return // What an earlier owner measured is still the best that is known.
	}
	s.known.egress = sent
	room := s.expect()
	s.room.Store(&room)
}

// expect is the room as far as it is known here: its people with what they have on, those besides who are expected with
// everything on, and what it sends, once its owner has measured that.
func (s *session) expect() headroom.Room {
	said := headroom.Expect(max(s.who.ExpectedSize, s.server.config.ExpectedSize))
	room := headroom.Room{People: len(s.known.roster), Unreserved: s.unreserved}
	for _, p := range s.known.roster {
		room.Cameras += ones(!p.GetVideoMuted(), p.GetScreenShared())
		room.Microphones += ones(!p.GetAudioMuted())
	}
	if missing := said.People - room.People; missing > 0 {
		room.People, room.Cameras, room.Microphones = said.People, room.Cameras+missing, room.Microphones+missing
	}
	if s.known.egress != nil {
		room.Measured, room.Sent = true, s.known.egress.Value()
	}
	return room
}

// ones counts what is true.
func ones(facts ...bool) (n int) {
	for _, fact := range facts {
		if fact {
			n++
		}
	}
	return n
}

// change keeps the roster current.
func (m *memory) change(c *control.RosterChange) {
	switch {
	case c.GetJoined() != nil:
		m.put(c.GetJoined())
	case c.GetUpdated() != nil:
		m.put(c.GetUpdated())
	default:
		m.roster = slices.DeleteFunc(m.roster, func(p *control.Peer) bool { return p.GetId() == c.GetLeft() })
	}
}

func (m *memory) put(p *control.Peer) {
	for i, old := range m.roster {
		if old.GetId() == p.GetId() {
			m.roster[i] = p
			return
		}
	}
	m.roster = append(m.roster, p)
}

// expected is the roster as a new node shall keep it.
func (m *memory) expected() []*control.Peer {
	list := make([]*control.Peer, 0, min(len(m.roster), maxExpected))
	for _, p := range m.roster[:min(len(m.roster), maxExpected)] {
		if p.GetHidden() { // It is oneself, and nobody is to be told.
			continue
		}
		list = append(list, &control.Peer{
			Id: p.GetId(), Identity: p.GetIdentity(), Name: p.GetName(),
			AudioMuted: p.GetAudioMuted(), VideoMuted: p.GetVideoMuted(), ScreenShared: p.GetScreenShared(),
		})
	}
	return list
}

// shares reports whether the client said that it sends a source that is off until it says so.
func (m *memory) shares(source wire.Source) bool {
	muted, said := m.muted[source]
	return said && !muted
}

// mute remembers what the client said of a source.
func (m *memory) mute(said *wire.Mute) {
	if m.muted == nil {
		m.muted = make(map[wire.Source]bool)
	}
	m.muted[said.Source] = said.Muted
}
