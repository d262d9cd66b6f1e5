package sfu

import (
	"sync/atomic"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/pin"
)

// heldPin is the pin under which a room is held, which is its owner's at a branch. The room's loop writes it, and Node.promote, which has
// the loop follow with becomeOwner. Everybody may read it.
type heldPin struct{ atomic.Pointer[pin.Pin] }

func (h *heldPin) pin() pin.Pin { return *h.Load() }

// stamp adds the present fence to an event.
func (h *heldPin) stamp(event *control.PeerEvent) *control.PeerEvent {
	event.Fence = control.FenceProto(h.pin().Fence)
	return event
}
