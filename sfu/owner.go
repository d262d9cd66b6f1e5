package sfu

import (
	"context"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Owner says whether a pin still places its room here. It is asked for each new peer.
type Owner interface {
	// Confirm returns nil for the room's pin, else pin.ErrFenced (a *pin.FencedError if the higher pin is known),
	// pin.ErrMissing, or an unknown error: try again.
	Confirm(ctx context.Context, room ring.RoomID, p pin.Pin) error
	// Opening returns the pin under which Confirm let room open, or none. It may wait for Confirm; its error is the
	// context's.
	Opening(ctx context.Context, room ring.RoomID) (pin.Pin, error)
	// StoreSteadyFor returns for how long the store has answered without a pause; zero while it is silent.
	StoreSteadyFor() time.Duration
}
