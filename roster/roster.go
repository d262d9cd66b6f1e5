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

// How many a room remembers of those who left, and how long.
const (
	MaxLeft = 50
	LeftFor = time.Hour
)

// Peer is one client in a room; a person may have several.
type Peer struct {
	ID       string
	Identity string
	Name     string
	Hidden   bool // from the people in the room
	// By the writer's clock in a Change, by the store's in a Room.
	Since time.Time
}

// Leave is a peer that is gone.
type Leave struct {
	Peer     Peer // ID, Identity, Name and Hidden
	LastSeen time.Time
}

// Change is what a media node writes of one room.
type Change struct {
	Room ring.RoomID
	Pin  pin.Pin // written only if it stands
	// Seq grows with each Change of a boot.
	Seq uint64
	// After is the room's last written Seq; 0: Put is the whole roster.
	After uint64
	// Settled, with a whole roster: nobody else is expected from the last owner.
	Settled bool
	Put     []Peer
	Drop    []Leave
	// Door has the moderator's settings in the store's words, as last heard; empty: none.
	Door string
}

// Outcome is of a Change.
type Outcome int

// Failed: unknown. Gap: the store lacks earlier changes, write all. Fenced: the pin does not stand.
const (
	Failed Outcome = iota
	Written
	Gap
	Fenced
)

// Room is the store's copy.
type Room struct {
	Pin pin.Pin // zero: nobody is there
	// Current is false until the owner by Pin has written the roster and waits for nobody of the last owner's, who
	// are in Peers until then.
	Current bool
	In      pin.Incarnation // of the store, 0: unknown
	Peers   []Peer          // in order of arrival
	Left    []Leave         // newest first, without Peers; Peer.ID is empty
	AsOf    time.Time       // by the store's clock
}

// Person is all clients of an identity.
type Person struct {
	Identity string
	Name     string
	Hidden   bool
	Peers    []string
	Since    time.Time
}

// People are in the order of their first clients.
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
