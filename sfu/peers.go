package sfu

import (
	"cmp"
	"maps"
	"slices"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// peerMap is everybody in a room, with those who are only expected. The room's loop owns it.
type peerMap map[forward.PeerID]*peer

// present counts the people without those who are only expected.
func (m peerMap) present() int {
	count := 0
	for _, p := range m {
		if !p.expected {
			count++
		}
	}
	return count
}

// here counts those whose place is this node.
func (m peerMap) here() int {
	count := 0
	for _, p := range m {
		if p.isHere() {
			count++
		}
	}
	return count
}

func (m peerMap) connected() int {
	count := 0
	for _, p := range m {
		if p.connected {
			count++
		}
	}
	return count
}

// mediaInUse reports whether a client has not closed its connection to this node yet.
func (m peerMap) mediaInUse() bool {
	for _, p := range m {
		if p.mediaLives() && !p.connection.Left() {
			return true
		}
	}
	return false
}

// shownTo is the roster that viewer may see, with expected people, by arrival; nil sees nobody who is hidden. Nobody unlisted is in it.
func (m peerMap) shownTo(viewer *peer) []*control.Peer {
	peers := make([]*peer, 0, len(m))
	for _, p := range m {
		if (p == viewer || !p.entry.GetHidden()) && !p.entry.GetUnlisted() {
			peers = append(peers, p)
		}
	}
	byArrival(peers)
	entries := make([]*control.Peer, 0, len(peers))
	for _, p := range peers {
		entries = append(entries, p.entry)
	}
	return entries
}

// inOrder is everybody by arrival.
func (m peerMap) inOrder() []*peer {
	peers := slices.Collect(maps.Values(m))
	byArrival(peers)
	return peers
}

func byArrival(peers []*peer) {
	slices.SortFunc(peers, func(a, b *peer) int { return cmp.Compare(a.joined, b.joined) })
}

// size counts who is expected, and nobody hidden, as signaling nodes do for their clients' rooms.
func (m peerMap) size() *control.RoomSize {
	size := &control.RoomSize{}
	one := map[bool]uint32{true: 1}
	for _, p := range m {
		if e := p.entry; !e.GetHidden() {
			size.People++
			size.Cameras += one[!e.GetVideoMuted()] + one[e.GetScreenShared()]
			size.Microphones += one[!e.GetAudioMuted()] + one[e.GetScreenAudio()]
		}
	}
	return size
}

// longestAway returns the absent peer whose place is given away first: of the identity with most such places, so that dropped sockets
// fill no room, and of its places the one that would end first. nil: nobody is absent. places counts those of the identity.
func (m peerMap) longestAway() (leaving *peer, places int) {
	away := map[string]int{}
	for _, p := range m {
		if p.away() {
			away[p.entry.GetIdentity()]++
		}
	}
	for _, p := range m {
		if !p.away() {
			continue
		}
		mine := away[p.entry.GetIdentity()]
		if leaving == nil || mine > places || mine == places && p.deadline.Before(leaving.deadline) {
			leaving, places = p, mine
		}
	}
	return leaving, places
}

// rosterVersion numbers the changes of a room's roster and keeps the digest of the latest. The room's loop owns it.
type rosterVersion struct {
	seq uint64
	// digest is that of the roster when seq was digestOf; 0: not computed yet.
	digest   uint64
	digestOf uint64
}

// digestFor returns the digest of the roster that viewer sees. It is computed once for each change for everybody who sees no hidden
// people.
func (v *rosterVersion) digestFor(viewer *peer, people peerMap) uint64 {
	if viewer.entry.GetHidden() {
		return control.RosterDigest(people.shownTo(viewer))
	}
	if v.digest == 0 || v.digestOf != v.seq {
		v.digest, v.digestOf = control.RosterDigest(people.shownTo(viewer)), v.seq
	}
	return v.digest
}
