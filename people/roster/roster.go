// Package roster is what the store has of who is in a room: the words of the media node that writes it and of the
// signaling nodes that read it.
//
// The media node that has the room has the truth. The store's copy follows it by numbered changes, each written only
// while the node's pin stands.
package roster

import (
	"cmp"
	"crypto/rand"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// The store remembers the people who left a room within these bounds.
const (
	MaxLeft = 50
	LeftFor = time.Hour
)

// Peer is one client of a person, who may have several.
type Peer struct {
	ID       string
	Identity string
	Name     string
	// Hidden says that other people do not see this peer.
	Hidden bool
	// Shows is not part of the store's roster. Only receivers of webhooks are told of it.
	Shows Sources
	// Since is by the writer's clock in a Change, and by the store's clock in a Room.
	Since time.Time
}

// Leave says that a peer has left.
type Leave struct {
	// Peer has no Since.
	Peer     Peer
	LastSeen time.Time
}

// Change is one write of a room's roster.
type Change struct {
	Room ring.RoomID
	// Pin must be the room's current pin.
	Pin pin.Pin
	// Seq grows with each write of a boot.
	Seq uint64
	// After is the Seq that the store must have. With 0, Put is the whole roster.
	After uint64
	// Settled, with a whole roster, says that no more peers are expected to come over from the former owner.
	Settled bool
	Put     []Peer
	Drop    []Leave
	// Door has the moderator's settings as the store's text, or nothing.
	Door string
	// Told says that receivers of webhooks are told of the room.
	Told bool
	// SID names one life of the room to these receivers. The store may know the room by another one, which it sets.
	SID string
	// Closed says that the room has ended while its pin stands. Only receivers of webhooks are told of it.
	Closed bool
	// News is set by the store if there is something to tell.
	News bool
}

// Sources is what a peer publishes, a set.
type Sources uint8

// SourcesKnown is missing while a peer of a former owner is expected.
const (
	Microphone Sources = 1 << iota
	Camera
	Screen
	ScreenAudio
	SourcesKnown
)

// NewSID returns a random name of a room's life, in LiveKit's form.
func NewSID() string { return "RM_" + rand.Text()[:16] }

// Outcome says what became of a Change.
type Outcome int

// Failed means that the outcome is unknown. After Gap the whole roster must be written. Fenced means that the
// Change's pin is not the current one.
const (
	Failed Outcome = iota
	Written
	Gap
	Fenced
)

// Room is the store's copy of a room's roster.
type Room struct {
	// Pin is zero if nobody is in the room.
	Pin pin.Pin
	// Current says that the pin's owner has written the roster, and that none of the former owner's peers are left in
	// it.
	Current bool
	// In is the store's incarnation, or 0 if it is unknown.
	In pin.Incarnation
	// Peers are in the order of their arrival.
	Peers []Peer
	// Left has the latest leave first. It has nobody who is in Peers, and no Peer.ID.
	Left []Leave
	// AsOf is by the store's clock.
	AsOf time.Time
}

// Person is one identity with its clients.
type Person struct {
	Identity string
	Name     string
	Hidden   bool
	Peers    []string
	Since    time.Time
}

// People groups peers by identity, in the order of arrival.
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

// Sort puts peers in the order of their arrival.
func Sort(peers []Peer) {
	slices.SortFunc(peers, func(a, b Peer) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID)) })
}
