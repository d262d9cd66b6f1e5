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

// ErrMissing means that the store has no pin of the room, a lower one or a damaged one. The room must be placed
// again.
var ErrMissing = errors.New("this pin does not stand")

// ErrUnreachable means that the master that has the pin failed to answer, and that its incarnation could not be read,
// either.
var ErrUnreachable = errors.New("the master of this pin does not answer, or refuses writes")

// FencedError is an ErrFenced with the higher pin.
type FencedError struct {
	Room    ring.RoomID
	Current Pin
}

func (e *FencedError) Error() string {
	return fmt.Sprintf("room %s: %v: %s of node %s", e.Room, ErrFenced, e.Current.Fence, e.Current.Node)
}

func (e *FencedError) Unwrap() error { return ErrFenced }

// CorruptError is an ErrCorrupt with the text that is no pin.
type CorruptError struct {
	Room ring.RoomID
	Raw  string
	// Why wraps ErrCorrupt.
	Why error
}

func (e *CorruptError) Error() string { return fmt.Sprintf("room %s: %v", e.Room, e.Why) }

func (e *CorruptError) Unwrap() error { return e.Why }

// Holding is a room together with its pin.
type Holding struct {
	Room ring.RoomID
	Pin  Pin
}

// Found is what a refresh found for one room.
type Found struct {
	Room ring.RoomID
	// Stands is the current pin, or zero if Err is set.
	Stands Pin
	// Rewritten says that the pin was missing and was written again.
	Rewritten bool
	Prolonged bool
	// Err is a *CorruptError or an ErrLater. After any other error the current pin is unknown.
	Err error
}
