package orchestrator

import (
	"errors"
	"fmt"

	"github.com/holdfast-rtc/holdfast/headroom"
)

// Refusals of placement, returned wrapped.
var (
	ErrNotSettled = errors.New("this node has not seen the cluster yet")
	ErrNoNodes    = errors.New("no SFU node takes rooms")
	// ErrStoreUnavailable: no answer in time.
	ErrStoreUnavailable = errors.New("the placement store is unavailable")
	ErrContended        = errors.New("the room's pin keeps moving")
	// ErrNobodyThere: the dial was refused, not timed out.
	ErrNobodyThere = errors.New("nobody listens there")
)

// NoHeadroomError means that no node can take the room.
type NoHeadroomError struct {
	Need headroom.Egress
	Best headroom.Egress // largest free egress
}

func (e *NoHeadroomError) Error() string {
	return fmt.Sprintf("no node has headroom for the room: it needs %v, the best node has %v left", e.Need, e.Best)
}
