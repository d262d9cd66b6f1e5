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

// What a room remembers of who is gone: so many, for so long.
const (
	MaxLeft = 50
	LeftFor = time.Hour
)

// Peer is one client in a room; a person may be there with several.
type Peer struct {
	ID       string
	Identity string
	Name     string
	Hidden   bool // the people in the room are not told
	// Since is by the writer's clock in a Change, and by the store's in a Room.
	Since time.Time
}

// Leave is a peer that is gone.
type Leave struct {
	Peer     Peer // its ID, Identity, Name and Hidden
	LastSeen time.Time
}

// Change is what a media node writes of one room.
type Change struct {
	Room ring.RoomID
	Pin  pin.Pin // nothing is written unless it stands
	// Seq grows with each Change of a boot.
	Seq uint64
	// After is the Seq of the room's last Change that was written; 0: Put is the whole roster.
	After uint64
	// Settled: of a whole roster, who is not in it and was to come from the last owner is gone.
	Settled bool
	Put     []Peer
	Drop    []Leave
	// Door is what a moderator has set at the room's door, in the store's words, as the writer last heard; empty: nothing.
	Door string
}

// Outcome is what became of a Change.
type Outcome int

// Failed: unknown. Gap: the store lacks what went before, write the whole. Fenced: the pin does not stand.
const (
	Failed Outcome = iota
	Written
	Gap
	Fenced
)

// Room is what the store has of a room.
type Room struct {
	Pin pin.Pin // zero: nobody is there
	// Current is false while the owner by Pin has yet to write the roster, or waits for people of the last owner: Peers has those too.
	Current bool
	In      pin.Incarnation // of the store, 0 if unknown
	Peers   []Peer          // in the order they came
	Left    []Leave         // the newest first, without those in Peers; Peer.ID is empty
	AsOf    time.Time       // by the store's clock
}

// Person is who is in a room, with all clients.
type Person struct {
	Identity string
	Name     string
	Hidden   bool
	Peers    []string
	Since    time.Time
}

// People groups peers by identity, in the order of their first ones.
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

// Sort puts peers into the order they came.
func Sort(peers []Peer) {
	slices.SortFunc(peers, func(a, b Peer) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
}
