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

// NoCap means that anybody may enter.
const NoCap = -1

// CheckInEvery is the pace: who misses ten check-ins is dropped.
const CheckInEvery = time.Second

// ErrDoor comes with a pin: the room's cap decides who enters.
var ErrDoor = errors.New("the room has a door")

// Reason is why people wait.
type Reason string

// The reasons.
const (
	Full       Reason = "full"
	Closed     Reason = "closed" // only moderators let people in
	NoCapacity Reason = "no_capacity"
	// Settling: there is a place, but the store may have forgotten who had it. For 3 s at most.
	Settling Reason = "settling"
)

// Entry is a person at a room's door.
type Entry struct {
	Identity string
	Peer     string // whose reservation it is
	Name     string
	Cap      int           // of the token, or NoCap
	Usual    int           // the server's; 0: none
	Host     bool          // enters closed rooms
	Wait     bool          // else Refused
	Ticket   int64         // from an earlier answer; 0: none
	Hold     time.Duration // nobody is let in for so long
}

// Outcome is an Entry's.
type Outcome int

// The outcomes.
const (
	Refused Outcome = iota
	Waiting
	Admitted // a place is reserved
	Inside   // had a place already
)

// Answer is to an Entry.
type Answer struct {
	Outcome Outcome
	Place   Place
	Ticket  int64
	Roster  bool   // written
	Owing   string // see Checked
}

// WaitError lets nobody in.
type WaitError struct{ Answer Answer }

func (e *WaitError) Error() string { return "the room is " + string(e.Answer.Place.Reason) }

// Place is one in a line.
type Place struct {
	Position int // from 1
	Reason   Reason
	Pace     Pace
}

// Pace is how fast a line moved.
type Pace struct {
	Left  int           // let in
	Since time.Duration // since the first of them
}

const atLeast = 3

// Estimate is how long a position waits at that pace; 0: unknown.
func (p Pace) Estimate(position int) time.Duration {
	if p.Left < atLeast || p.Since <= 0 || position < 1 {
		return 0
	}
	return time.Duration(position) * p.Since / time.Duration(p.Left)
}

// Asked are a room's people who wait at a node.
type Asked struct {
	Room  ring.RoomID
	Cap   int // their lowest, or NoCap
	Usual int
	Dead  string // the pin of a media node that is dead past Grace
	Who   []string
}

// Answers to a check-in.
const (
	Gone       = 0 // unknown to the store
	LetIn      = -1
	TurnedAway = -2
)

// Checked answers an Asked.
type Checked struct {
	Room   ring.RoomID
	Reason Reason
	Pace   Pace
	Roster string // its pin; "": none
	// Owing is the pin of a media node that has not written its roster.
	Owing  string
	Places []int // of each Who, as Word.Code
	Err    error
}

// Deed is a moderator's or a signaling node's.
type Deed string

// The deeds.
const (
	Look    Deed = "look"
	Admit   Deed = "admit"   // before all others
	Turn    Deed = "turn"    // away
	Quit    Deed = "quit"    // the line, by the person
	Release Deed = "release" // an unused admission
	Keep    Deed = "keep"    // a leaving person's place, for 10 s
	Open    Deed = "open"    // the room found a media node
	Change  Deed = "change"  // cap and closed
)

// Order is a deed at a door.
type Order struct {
	Deed     Deed
	Identity string
	Peer     string // of Release
	Cap      *int   // nil leaves it; NoCap lifts it
	Closed   *bool  // nil leaves it
	// Vacant is an owing pin of an empty room. Over: nor can anybody of an earlier pin come.
	Vacant string
	Over   bool
}

// Door is a room's, with the first waiters.
type Door struct {
	Done   bool // the person was there
	Cap    int  // in force
	Closed bool
	Inside int // people with a place
	Length int
	Pace   Pace
	Pin    string // the room's; "": none
	Line   []Waiter
}

// Waiter is a person in the line.
type Waiter struct {
	Identity string
	Name     string
	Since    time.Time
}
