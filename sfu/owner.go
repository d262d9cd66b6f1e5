package sfu

import (
	"context"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Owner says whether a pin still places its room here. It is asked before a peer
// is served that was not in the room before; peers who are stay, whatever it says.
type Owner interface {
	// Confirm returns nil when p is the room's pin. An error that wraps
	// pin.ErrFenced (with a *pin.FencedError if the higher one is known) says that
	// a higher pin exists, one that wraps pin.ErrMissing that p does not stand; any other error says that
	// this cannot be known just now, and the signaling node is told to try again.
	Confirm(ctx context.Context, room ring.RoomID, p pin.Pin) error
	// Opening returns the pin under which Confirm has let room open here, or none. It may wait for questions that Confirm is asked
	// at the moment; its error is the context's.
	Opening(ctx context.Context, room ring.RoomID) (pin.Pin, error)
}
