package orchestrator

import (
	"errors"
	"fmt"

	"github.com/holdfast-rtc/holdfast/headroom"
)

// The refusals of placement. Each is returned wrapped; test with errors.Is.
var (
	// ErrNotSettled: this process has not seen the whole cluster yet. Retry soon.
	ErrNotSettled = errors.New("this node has not seen the cluster yet")
	// ErrNoNodes: no SFU node is alive and taking rooms.
	ErrNoNodes = errors.New("no SFU node takes rooms")
	// ErrStoreUnavailable: the store did not answer within the budget, so the room cannot be placed
	// safely. Running rooms go on.
	ErrStoreUnavailable = errors.New("the placement store is unavailable")
	// ErrContended: the pin moved at every attempt to move it. Retry soon.
	ErrContended = errors.New("the room's pin keeps moving")
	// ErrNobodyThere is what a Prober returns when a dial was refused. A time-out must not be reported as this.
	ErrNobodyThere = errors.New("nobody listens there")
)

// NoHeadroomError says that no node can take the room, and how much the best one has left.
type NoHeadroomError struct {
	Need headroom.Egress // what the room is expected to cost
	Best headroom.Egress // the largest free egress of any node that may be asked
}

// Error gives both amounts.
func (e *NoHeadroomError) Error() string {
	return fmt.Sprintf("no node has headroom for the room: it needs %v, the best node has %v left", e.Need, e.Best)
}
