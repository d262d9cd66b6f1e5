package sfu

import (
	"time"

	"github.com/holdfast-rtc/holdfast/control"
)

// The audience of a large room are the people beyond Limits.ListedPerRoom who only watch. They are counted, and not in the roster: everybody
// would be told of each of them. Who raises a hand, writes, or may publish is listed, and stays so. The room's owner decides.

// audienceEvery is how often the room is told how large the audience is.
const audienceEvery = 2 * time.Second

// audience is the size of the audience as the room was last told. The room's loop owns it.
type audience struct {
	told    uint32
	toldAt  time.Time
	planned bool
}

// listed counts who is in the roster, with expected people.
func (m peerMap) listed() int {
	count := 0
	for _, p := range m {
		if !p.entry.GetHidden() && !p.entry.GetUnlisted() {
			count++
		}
	}
	return count
}

// audience returns who is in the room and unlisted, by arrival.
func (m peerMap) audience() []*peer {
	var peers []*peer
	for _, p := range m {
		if p.entry.GetUnlisted() {
			peers = append(peers, p)
		}
	}
	byArrival(peers)
	return peers
}

// unlists reports whether a newcomer belongs to the audience.
func (l *roll) unlists(entry *control.Peer, asked *control.Attach) bool {
	if asked.GetCanPublish() || !asked.GetKnowsAudience() || entry.GetHidden() || entry.GetModerator() || entry.GetHandRaisedUnixMs() != 0 {
		return false
	}
	// While the listed people of a former node are on their way, nobody of the audience takes their places.
	return entry.GetUnlisted() && l.isSettling() || l.peers.listed() >= l.listed
}

// list has a peer of the audience in the roster from now on, and returns the change of which the room is to be told.
func (l *roll) list(p *peer) *control.RosterChange {
	entry := rosterCopy(p.entry)
	entry.Unlisted = false
	p.entry = entry
	l.tellAudienceSoon()
	return &control.RosterChange{Change: &control.RosterChange_Joined{Joined: entry}}
}

// changeOf is what the room is told of a peer whose entry has changed.
func (l *roll) changeOf(p *peer) *control.RosterChange {
	if p.entry.GetUnlisted() {
		return l.list(p)
	}
	return &control.RosterChange{Change: &control.RosterChange_Updated{Updated: p.entry}}
}

// fill lists those of the audience who came first, if the roster has places again.
func (l *roll) fill() {
	if l.members.owner != nil || l.isSettling() {
		return
	}
	free := l.listed - l.peers.listed()
	if free <= 0 {
		return
	}
	waiting := l.peers.audience()
	for _, p := range waiting[:min(free, len(waiting))] {
		l.tell(p)
	}
}

// tellAudienceSoon tells everybody how large the audience is, at once after a quiet time.
func (l *roll) tellAudienceSoon() {
	if l.audience.planned {
		return
	}
	wait := audienceEvery - time.Since(l.audience.toldAt)
	if wait <= 0 {
		l.tellAudience()
		return
	}
	l.audience.planned = true
	l.loop.after(wait, l.tellAudience)
}

func (l *roll) tellAudience() {
	l.audience.planned = false
	people := uint32(len(l.peers.audience()))
	if l.members.owner != nil || people == l.audience.told {
		return
	}
	l.audience.told, l.audience.toldAt = people, time.Now()
	l.teller.sendRoom(l.audienceEvent())
}

func (l *roll) audienceEvent() *control.PeerEvent {
	return &control.PeerEvent{Event: &control.PeerEvent_Audience{Audience: &control.Audience{People: l.audience.told}}}
}

// heedAudience passes on at a branch what the owner tells of the audience.
func (l *roll) heedAudience(event *control.PeerEvent) {
	l.audience.told = event.GetAudience().GetPeople()
	l.teller.sendAll(event)
}
