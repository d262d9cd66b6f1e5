package pin

import (
	"errors"
	"fmt"

	"github.com/holdfast-rtc/holdfast/ring"
)

// ErrFenced means that a higher pin of the room exists.
var ErrFenced = errors.New("a higher pin of this room exists")

// ErrUnconfirmed means that the owner cannot tell now whether its pin is current, and takes nobody new.
var ErrUnconfirmed = errors.New("the pin of this room cannot be confirmed now")

// ErrMissing means that the store has nothing, a lower pin or damage. The room must be placed again.
var ErrMissing = errors.New("this pin does not stand")

// FencedError has the higher pin. It is ErrFenced.
type FencedError struct {
	Room    ring.RoomID
	Current Pin
}

// Error names the room and the higher pin.
func (e *FencedError) Error() string {
	return fmt.Sprintf("room %s: %v: %s of node %s", e.Room, ErrFenced, e.Current.Fence, e.Current.Node)
}

// Unwrap returns ErrFenced.
func (e *FencedError) Unwrap() error { return ErrFenced }

// CorruptError has the text that is no pin, for a compare-and-set. It is ErrCorrupt.
type CorruptError struct {
	Room ring.RoomID
	Raw  string // as stored
	Why  error  // wraps ErrCorrupt
}

// Error names the room and the fault.
func (e *CorruptError) Error() string { return fmt.Sprintf("room %s: %v", e.Room, e.Why) }

// Unwrap returns an ErrCorrupt.
func (e *CorruptError) Unwrap() error { return e.Why }

// Holding is a room and the pin under which it is held.
type Holding struct {
	Room ring.RoomID
	Pin  Pin
}

// Found is what a store held when an owner refreshed a room.
type Found struct {
	Room      ring.RoomID
	Stands    Pin   // zero when Err is set
	Rewritten bool  // our missing pin was written again
	Prolonged bool  // the time to live was renewed
	Err       error // *CorruptError, or unknown
}
