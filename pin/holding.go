package pin

import (
	"errors"
	"fmt"

	"github.com/holdfast-rtc/holdfast/ring"
)

// ErrFenced means that a higher pin exists.
var ErrFenced = errors.New("a higher pin of this room exists")

// ErrUnconfirmed means that the owner cannot tell whether its pin is current, and takes nobody new.
var ErrUnconfirmed = errors.New("the pin of this room cannot be confirmed now")

// ErrMissing means that the store has nothing, a lower pin or damage. Place the room again.
var ErrMissing = errors.New("this pin does not stand")

// ErrUnreachable means that a pin's master failed, and that its incarnation was not to be had either.
var ErrUnreachable = errors.New("the master of this pin does not answer, or refuses writes")

// FencedError has the higher pin.
type FencedError struct {
	Room    ring.RoomID
	Current Pin
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("room %s: %v: %s of node %s", e.Room, ErrFenced, e.Current.Fence, e.Current.Node)
}

func (e *FencedError) Unwrap() error { return ErrFenced }

// CorruptError has text that is no pin.
type CorruptError struct {
	Room ring.RoomID
	Raw  string
	Why  error // wraps ErrCorrupt
}

func (e *CorruptError) Error() string { return fmt.Sprintf("room %s: %v", e.Room, e.Why) }

func (e *CorruptError) Unwrap() error { return e.Why }

// Holding is a room and its pin.
type Holding struct {
	Room ring.RoomID
	Pin  Pin
}

// Found is a refresh's result.
type Found struct {
	Room      ring.RoomID
	Stands    Pin  // zero with Err
	Rewritten bool // our missing pin
	Prolonged bool
	Err       error // *CorruptError, ErrLater; else unknown
}
