package signaling

import (
	"slices"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// maxExpected bounds the roster that is handed to a room's new node. Without their
// metadata 1000 entries are about 200 KiB; a control message takes 1 MiB.
const maxExpected = 1000

// memory is what a session remembers of its room and client, so that it can tell
// a new node. It is bounded by the limits of the messages it comes from.
type memory struct {
	roster     []*control.Peer
	slots      []*control.Slot
	muted      map[wire.Source]bool // as the client said last
	view       *wire.View           // nil until the client says one
	unanswered *wire.Offer          // the client's latest offer, until it is answered
	offered    bool                 // the client has offered under this pin
}

// setRoster replaces what is known of the room's people.
func (s *session) setRoster(peers []*control.Peer) {
	s.known.roster = peers
	s.roomSize.Store(int32(min(len(peers), 1<<20))) // bounded in the same line
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
