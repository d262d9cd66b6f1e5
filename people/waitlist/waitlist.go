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

// NoCap stands for a room without a limit of people.
const NoCap = -1

// CheckInEvery is the time between two check-ins of a waiting person. The store drops a person who misses ten.
const CheckInEvery = time.Second

// ErrDoor comes together with a pin and says that the room's cap decides who may enter.
var ErrDoor = errors.New("the room has a door")

// Reason says why people wait.
type Reason string

// These are the reasons.
const (
	Full Reason = "full"
	// Only moderators let people in.
	Closed     Reason = "closed"
	NoCapacity Reason = "no_capacity"
	// Settling means that the room has a place, but the store may have forgotten who had it. It lasts for 3 s at
	// most.
	Settling Reason = "settling"
)

// Entry is a person who asks to enter a room.
type Entry struct {
	Identity string
	// Peer is the client for which a place is reserved.
	Peer string
	Name string
	// Cap is the cap in the person's token, or NoCap.
	Cap int
	// Usual is the server's cap, or 0 for none.
	Usual int
	// Host says that the person may enter a closed room.
	Host bool
	// Wait says that the person joins the line if there is no place. Without it, the outcome is Refused.
	Wait bool
	// Ticket comes from an earlier answer. 0 means none.
	Ticket int64
	// Hold lets nobody into the room for so long.
	Hold time.Duration
}

// Outcome says what the store decided about an Entry.
type Outcome int

// These are the outcomes.
const (
	Refused Outcome = iota
	Waiting
	// A place is reserved for the person.
	Admitted
	// The person had a place already.
	Inside
)

// Answer is the store's answer to an Entry.
type Answer struct {
	Outcome Outcome
	Place   Place
	Ticket  int64
	// Roster says that the room's roster is written.
	Roster bool
	// Owing is the Owing of Checked.
	Owing string
	// Settings are those of the door, as a media node writes them into the store, or nothing.
	Settings string
}

// WaitError means that the person is not let in. Answer says why.
type WaitError struct{ Answer Answer }

func (e *WaitError) Error() string { return "the room is " + string(e.Answer.Place.Reason) }

// Place is a place in a line.
type Place struct {
	// Position counts from 1.
	Position int
	Reason   Reason
	Pace     Pace
}

// Pace says how fast a line has moved.
type Pace struct {
	// Left counts the people who were let in.
	Left int
	// Since is the time since the first of them was let in.
	Since time.Duration
}

const atLeast = 3

// Estimate returns how long the person at a position will wait at this pace, or 0 if that is unknown.
func (p Pace) Estimate(position int) time.Duration {
	if p.Left < atLeast || p.Since <= 0 || position < 1 {
		return 0
	}
	return time.Duration(position) * p.Since / time.Duration(p.Left)
}

// Asked is a check-in: the people of one room who wait at one node.
type Asked struct {
	Room ring.RoomID
	// Cap is the lowest cap of these people, or NoCap.
	Cap   int
	Usual int
	// Dead is the pin of a media node that has been dead for longer than Grace.
	Dead string
	Who  []string
}

// A check-in is answered by a position or one of these codes.
const (
	// The store does not know the person.
	Gone       = 0
	LetIn      = -1
	TurnedAway = -2
)

// Checked is the store's answer to an Asked.
type Checked struct {
	Room   ring.RoomID
	Reason Reason
	Pace   Pace
	// Roster is the pin under which the roster was written, or nothing.
	Roster string
	// Owing is the pin of a media node that has not written its roster.
	Owing string
	// Places has the position or the code of each person in Who, as in Word.Code.
	Places []int
	Err    error
}

// Deed is what a moderator or a signaling node does at a door.
type Deed string

// These are the deeds.
const (
	Look Deed = "look"
	// Admit lets a person in before all others.
	Admit Deed = "admit"
	// Turn turns a person away.
	Turn Deed = "turn"
	// Quit takes a person out of the line, at the person's wish.
	Quit Deed = "quit"
	// Release gives back an admission that was not used.
	Release Deed = "release"
	// Keep keeps the place of a leaving person for 10 s.
	Keep Deed = "keep"
	// Open says that a media node was found for the room.
	Open Deed = "open"
	// Change sets the cap, whether the door is closed, and the description.
	Change Deed = "change"
	// Make is Change for a room that an application makes, perhaps anew.
	Make Deed = "make"
	// Forget takes away all that Change has set.
	Forget Deed = "forget"
)

// Order is a deed at a room's door.
type Order struct {
	Deed     Deed
	Identity string
	// Peer is the client of a Release.
	Peer string
	// Cap is the new cap. nil leaves the cap, and NoCap lifts it.
	Cap *int
	// Closed is nil if it does not change.
	Closed *bool
	// Describe is the new description of the room, opaque here; nil leaves it.
	Describe *string
	// Vacant is the owing pin of a room in which nobody is. With Over, nobody who was there under an earlier pin can
	// come back, either.
	Vacant string
	Over   bool
}

// Door is the state of a room's door, with the first people in its line.
type Door struct {
	// Done says that the deed found its person.
	Done bool
	// Cap is the cap in force.
	Cap    int
	Closed bool
	// Inside counts the people who have a place.
	Inside int
	Length int
	Pace   Pace
	// Pin is the room's pin, or nothing.
	Pin string
	// Described is the room's description, or nothing.
	Described string
	Line      []Waiter
}

// Waiter is one person in the line.
type Waiter struct {
	Identity string
	Name     string
	Since    time.Time
}
