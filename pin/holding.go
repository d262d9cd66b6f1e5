package pin

import (
	"errors"
	"fmt"

	"github.com/holdfast-rtc/holdfast/ring"
)

// ErrFenced is wrapped by every refusal that a higher pin of the room causes.
var ErrFenced = errors.New("a higher pin of this room exists")

// ErrUnconfirmed is wrapped when an owner cannot tell just now whether its pin
// still stands, and so must not take on anybody new.
var ErrUnconfirmed = errors.New("the pin of this room cannot be confirmed now")

// ErrMissing is wrapped when a pin was to be used that the store does not have, though no higher one is known
// either: it has nothing there, or a lower one, or damage. Nothing can be concluded from the pin; the room must be placed again.
var ErrMissing = errors.New("this pin does not stand")

// FencedError says which pin outranks the one in hand. It is ErrFenced.
type FencedError struct {
	Room    ring.RoomID
	Current Pin
}

// Error names the room and the pin that outranks.
func (e *FencedError) Error() string {
	return fmt.Sprintf("room %s: %v: %s of node %s", e.Room, ErrFenced, e.Current.Fence, e.Current.Node)
}

// Unwrap makes errors.Is(err, ErrFenced) true.
func (e *FencedError) Unwrap() error { return ErrFenced }

// CorruptError carries the text that a store held where a pin should be, so that it
// can be replaced by compare-and-set without ever being trusted. It is ErrCorrupt.
type CorruptError struct {
	Room ring.RoomID
	Raw  string // the text exactly as stored
	Why  error  // what Parse said; wraps ErrCorrupt
}

// Error names the room and the fault.
func (e *CorruptError) Error() string { return fmt.Sprintf("room %s: %v", e.Room, e.Why) }

// Unwrap makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Unwrap() error { return e.Why }

// Holding is one room together with the pin under which it is held.
type Holding struct {
	Room ring.RoomID
	Pin  Pin
}

// Found is what a store held for one room when its owner refreshed it.
type Found struct {
	Room      ring.RoomID
	Stands    Pin   // the pin that stands now; zero when Err is set
	Rewritten bool  // the key was missing and the owner's own pin was written again
	Prolonged bool  // what stands lives as long as a new pin from here
	Err       error // *CorruptError, or why the store could not say
}
