package signaling

import (
	"slices"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const maxExpected = 1000

// memory is what a session can tell a new node, bounded by the limits of messages.
type memory struct {
	roster     []*control.Peer
	egress     *control.Egress
	limited    bool   // as told to the client
	path       uint64 // bits per second, from a media node; 0: unlimited
	slots      []*control.Slot
	muted      map[wire.Source]bool
	unsaid     map[wire.Source]bool // said without a link
	hand       *wire.Hand           // likewise
	view       *wire.View
	unanswered *wire.Offer
	offered    bool // under this pin
}

func (s *session) setRoster(peers []*control.Peer) {
	s.known.roster = peers
	room := s.expect()
	s.room.Store(&room)
}

func (s *session) setEgress(sent *control.Egress) {
	if sent == nil {
		return
	}
	s.known.egress = sent
	room := s.expect()
	s.room.Store(&room)
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
	room := headroom.Room{People: len(s.known.roster), Unreserved: s.unreserved, Running: s.told != "" || s.resumes}
	for _, p := range s.known.roster {
		room.Cameras += ones(!p.GetVideoMuted(), p.GetScreenShared())
		room.Microphones += ones(!p.GetAudioMuted(), p.GetScreenAudio())
	}
	room = room.AtLeast(max(s.who.ExpectedSize, s.server.config.ExpectedSize))
	if s.known.egress != nil {
		room.Measured, room.Sent = true, s.known.egress.Value()
	}
	return room
}

func ones(facts ...bool) (n int) {
	for _, fact := range facts {
		if fact {
			n++
		}
	}
	return n
}

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

func (m *memory) expected() []*control.Peer {
	list := make([]*control.Peer, 0, min(len(m.roster), maxExpected))
	for _, p := range m.roster[:min(len(m.roster), maxExpected)] {
		if p.GetHidden() { // oneself: told to nobody
			continue
		}
		list = append(list, p)
	}
	return list
}

func (m *memory) shares(source wire.Source) bool {
	muted, said := m.muted[source]
	return said && !muted
}

func (s *session) shows() bool {
	camera := !s.known.muted[wire.SourceCamera] && mayPublish(s.who, wire.SourceCamera)
	return camera || s.known.shares(wire.SourceScreen)
}

func (m *memory) mute(source wire.Source, muted bool) {
	if m.muted == nil {
		m.muted, m.unsaid = make(map[wire.Source]bool), make(map[wire.Source]bool)
	}
	m.muted[source] = muted
}
