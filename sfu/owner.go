package sfu

import (
	"context"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Owner says whether a pin still places its room here. It is asked before a new peer is served; the others stay, whatever it says.
type Owner interface {
	// Confirm returns nil when p is the room's pin. pin.ErrFenced (a *pin.FencedError if the higher pin is known): there is a higher one.
	// pin.ErrMissing: p does not stand. Any other error: unknown, try again.
	Confirm(ctx context.Context, room ring.RoomID, p pin.Pin) error
	// Opening returns the pin under which Confirm has let room open here, or none. It may wait for Confirm; its error is the context's.
	Opening(ctx context.Context, room ring.RoomID) (pin.Pin, error)
}
