package orchestrator

import (
	"errors"
	"fmt"

	"github.com/holdfast-rtc/holdfast/headroom"
)

// These are the reasons why a room is not placed. They are returned wrapped.
var (
	ErrNotSettled = errors.New("this node has not seen the cluster yet")
	ErrNoNodes    = errors.New("no SFU node takes rooms")
	// ErrStoreUnavailable means that the store did not answer in time.
	ErrStoreUnavailable = errors.New("the placement store is unavailable")
	ErrContended        = errors.New("the room's pin keeps moving")
	// ErrNobodyThere means that the dial was refused. A dial that times out is another error.
	ErrNobodyThere = errors.New("nobody listens there")
)

// NoHeadroomError means that no node can take the room. Best is the largest free egress of a node.
type NoHeadroomError struct {
	Need headroom.Egress
	Best headroom.Egress
}

func (e *NoHeadroomError) Error() string {
	return fmt.Sprintf("no node has headroom for the room: it needs %v, the best node has %v left", e.Need, e.Best)
}
