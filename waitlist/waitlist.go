// Package waitlist says what the waiting list of a room is: who asks to enter, what the store answers, and when waiting
// people are told. A List keeps the people who wait at one signaling node.
//
// It promises that the check-ins of all rooms are one call of the store, that a person is told of each place once, and that
// an estimate has a basis. It knows neither sockets nor Redis; who is let in is decided by the store's scripts.
package waitlist

import (
	"errors"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
)

// NoCap is the cap of a room that anybody may enter.
const NoCap = -1

// CheckInEvery is how often a node checks in for its waiting people. Who misses ten is dropped.
const CheckInEvery = time.Second

// ErrDoor comes with a pin: the room's cap decides who enters.
var ErrDoor = errors.New("the room has a door")

// Reason is why people wait.
type Reason string

// The reasons.
const (
	Full       Reason = "full"
	Closed     Reason = "closed"      // nobody enters but by a moderator
	NoCapacity Reason = "no_capacity" // no media node has headroom for the room
)

// Entry is a person who asks to enter a room.
type Entry struct {
	Identity string
	Name     string        // as shown to who runs the room
	Cap      int           // of the token, NoCap for none
	Usual    int           // the server's, 0 for none
	Host     bool          // runs the room: closed doors are open
	Wait     bool          // else nobody is put into the line
	Ticket   int64         // from an earlier answer, for a store that forgot; 0: none
	Hold     time.Duration // no media node for the room: nobody is let in for so long
}

// Outcome is what became of an Entry.
type Outcome int

// The outcomes.
const (
	Refused Outcome = iota // no place, no waiting
	Waiting
	Admitted // a place is reserved until the roster shows the person
	Inside   // the person has a place already
)

// Answer is to an Entry.
type Answer struct {
	Outcome Outcome
	Place   Place
	Ticket  int64
	Roster  bool   // the roster is written
	Owing   string // as of Checked
}

// WaitError is an Answer that lets nobody in.
type WaitError struct{ Answer Answer }

func (e *WaitError) Error() string { return "the room is " + string(e.Answer.Place.Reason) }

// Place is one in a line.
type Place struct {
	Position int // from 1
	Reason   Reason
	Pace     Pace
}

// Pace is how fast a line moved of late.
type Pace struct {
	Left  int           // let in from the line
	Since time.Duration // the first of them
}

// Fewer are chance.
const atLeast = 3

// Estimate is how long a position waits at that pace, 0 without a basis. It grows while a line stands.
func (p Pace) Estimate(position int) time.Duration {
	if p.Left < atLeast || p.Since <= 0 || position < 1 {
		return 0
	}
	return time.Duration(position) * p.Since / time.Duration(p.Left)
}

// Asked are one room's people who wait at a node.
type Asked struct {
	Room  ring.RoomID
	Cap   int // the lowest of their tokens', NoCap for none
	Usual int
	Dead  string   // text of the pin, or else the roster's, if its media node is dead past the grace time
	Who   []string // identities
}

// What became of somebody who checked in.
const (
	Gone       = 0 // the store does not know the person
	LetIn      = -1
	TurnedAway = -2
)

// Checked answers an Asked.
type Checked struct {
	Room   ring.RoomID
	Reason Reason
	Pace   Pace
	Roster string // text of the pin that wrote the roster; "": none
	// Owing is the text of a pin whose media node has not written who is there. Until then people let in count.
	Owing  string
	Places []int // for each of Who: position, or Gone, LetIn or TurnedAway
	Err    error
}

// Deed is by a moderator, or by a node for a person.
type Deed string

// The deeds.
const (
	Look    Deed = "look"
	Admit   Deed = "admit"   // in front of all others
	Turn    Deed = "turn"    // away
	Quit    Deed = "quit"    // the line, by the person
	Release Deed = "release" // an unused admission
	Keep    Deed = "keep"    // the place of somebody who leaves, for 10 s
	Open    Deed = "open"    // the room found a media node
	Change  Deed = "change"  // cap and closed
)

// Order is a deed at a room's door.
type Order struct {
	Deed     Deed
	Identity string
	Cap      *int  // nil leaves it; NoCap lifts it
	Closed   *bool // nil leaves it
	// Vacant is an owing pin whose media node says that the room is empty. Over: nor can anybody of an earlier one
	// come.
	Vacant string
	Over   bool
}

// Door is a room's, with the first who wait.
type Door struct {
	Done   bool // there was such a person
	Cap    int  // that counts
	Closed bool
	Inside int // people with a place
	Length int
	Pace   Pace
	Pin    string // the room's, as text; "" for none
	Line   []Waiter
}

// Waiter is somebody in the line.
type Waiter struct {
	Identity string
	Name     string
	Since    time.Time
}
