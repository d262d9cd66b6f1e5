package signaling

import (
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/signaling/replica"
	"github.com/holdfast-rtc/holdfast/signaling/translate"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// A large room's media node counts the people who only watch, and does not list them. Everybody at this node shares the roster without them.
// Each such person's client is told of it with its own entry in it, as if it were listed.

// audience is what a session knows of the unlisted people of its room.
type audience struct {
	// own is the person's own entry while the roster does not have it.
	own *control.Peer
	// people counts all of them.
	people uint32
	// told is how many others the client knows of.
	told int
}

// others is how many unlisted people there are beside the person itself.
func (a *audience) others() int {
	if a.own != nil && a.people > 0 {
		return int(a.people) - 1
	}
	return int(a.people)
}

// beginAudience takes what the link's first word says of the unlisted people.
func (s *session) beginAudience() {
	s.known.audience.own, s.known.audience.people = s.link.Attached.GetOwn(), s.link.Attached.GetAudience()
}

// setAudience takes how many are unlisted, and tells the client if that is new.
func (s *session) setAudience(people uint32) {
	s.known.audience.people = people
	s.setRoster(s.known.roster)
	if s.known.audience.others() == s.known.audience.told {
		return
	}
	s.socket.send(&wire.Audience{Others: s.sayAudience(), Epoch: s.pin.Fence.Epoch})
}

// sayAudience is how many others are unlisted, for a message that tells the client.
func (s *session) sayAudience() int {
	s.known.audience.told = s.known.audience.others()
	return s.known.audience.told
}

// ownEntry is the person's own entry, listed or not; nil before the first roster.
func (m *memory) ownEntry(peer string) *control.Peer {
	if listed := m.roster.Peer(peer); listed != nil {
		return listed
	}
	return m.audience.own
}

// wireRoster is a roster as the client is told of it.
func (s *session) wireRoster(roster *replica.Roster) wire.List[wire.Peer] {
	entries := translate.Roster(roster.Peers())
	if own := s.known.audience.own; own != nil && roster.Peer(s.who.Peer) == nil {
		entries = append(entries, translate.Peer(own))
	}
	return entries
}
