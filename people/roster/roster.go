// Package roster is what the store has of who is in a room: the words of the media node that writes it and of the
// signaling nodes that read it.
//
// The media node that has the room has the truth. The store's copy follows it by numbered changes, each written only
// while the node's pin stands.
package roster

import (
	"cmp"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// A room's memory of those who left.
const (
	MaxLeft = 50
	LeftFor = time.Hour
)

// Peer is a client; a person may have several.
type Peer struct {
	ID       string
	Identity string
	Name     string
	Hidden   bool // from others
	// By the writer's clock in a Change, by the store's in a Room.
	Since time.Time
}

// Leave is of a peer.
type Leave struct {
	Peer     Peer // without Since
	LastSeen time.Time
}

// Change is a write of a room.
type Change struct {
	Room ring.RoomID
	Pin  pin.Pin // must be current
	// Seq grows through a boot.
	Seq uint64
	// After is the last written Seq; 0: Put is the whole roster.
	After uint64
	// Settled, in a whole roster: no more of the last owner's peers are expected.
	Settled bool
	Put     []Peer
	Drop    []Leave
	// Door has the moderator's settings in the store's text; empty: none.
	Door string
}

// Outcome is of a Change.
type Outcome int

// Failed: unknown. Gap: write all. Fenced: the pin is not current.
const (
	Failed Outcome = iota
	Written
	Gap
	Fenced
)

// Room is the store's copy.
type Room struct {
	Pin pin.Pin // zero: nobody is there
	// Current: Pin's owner has written the roster, and Peers has nobody of the last owner's.
	Current bool
	In      pin.Incarnation // 0: unknown
	Peers   []Peer          // in order of arrival
	Left    []Leave         // newest first, without Peers and Peer.ID
	AsOf    time.Time       // by the store's clock
}

// Person is an identity's clients.
type Person struct {
	Identity string
	Name     string
	Hidden   bool
	Peers    []string
	Since    time.Time
}

// People are in order of arrival.
func People(peers []Peer) []Person {
	var people []Person
	at := make(map[string]int, len(peers))
	for _, p := range peers {
		i, known := at[p.Identity]
		if !known {
			i, at[p.Identity] = len(people), len(people)
			people = append(people, Person{Identity: p.Identity, Name: p.Name, Hidden: p.Hidden, Since: p.Since})
		}
		people[i].Peers = append(people[i].Peers, p.ID)
	}
	return people
}

// Sort is by arrival.
func Sort(peers []Peer) {
	slices.SortFunc(peers, func(a, b Peer) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
}
