package orchestrator

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/failpoint"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// ErrNoPin means that the room has no pin, so there is nothing to move.
var ErrNoPin = errors.New("the room is open nowhere")

// TargetError says why a room cannot move to the named node.
type TargetError struct {
	Node ring.NodeID
	Why  string
}

func (e *TargetError) Error() string {
	return fmt.Sprintf("node %s cannot take the room: %s", e.Node, e.Why)
}

// Move takes a room off the living node of the pin from, to the node to, or to one that placement chooses if to is
// empty. It returns the current pin, which may still be from. It returns Place's errors, *TargetError, ErrNoPin and
// *pin.CorruptError.
func (o *Orchestrator) Move(ctx context.Context, room ring.RoomID, from pin.Pin, to ring.NodeID, expect headroom.Room, why string) (pin.Pin, error) {
	view, err := o.settledView()
	if err != nil {
		return pin.Pin{}, err
	}
	fence := pin.Fence{Epoch: o.cache.NextEpoch(room, from), Nonce: pin.NewNonce()}
	r := o.request(room, expect)
	// A live move is no emergency, so it takes no node that has headroom for the lowest layers only.
	r.why, r.avoid, r.lowest = why, avoidance{node: from.Node, from: from.Node, standby: o.standby(room)}, false
	node, err := o.target(view, r, from, to, fence)
	if err != nil {
		return pin.Pin{}, fmt.Errorf("move room %s: %w", room, err)
	}
	next := pin.Pin{Fence: fence, Node: node.ID, Boot: node.Boot, Control: node.Control}
	failpoint.Hit("move.before-swap")
	now, err := o.write(ctx, r, current{pin: from}, next)
	switch {
	case err != nil:
		return pin.Pin{}, err
	case now.pin != next:
		// Another caller's write won, so nothing moves to the chosen node.
		o.ledger.forget(room, fence)
	}
	switch {
	case now.raw != nil:
		return pin.Pin{}, fmt.Errorf("move room %s: %w", room, now.raw)
	case now.absent():
		return pin.Pin{}, fmt.Errorf("move room %s: %w", room, ErrNoPin)
	}
	o.cache.Note(room, now.pin)
	if now.pin != next {
		return now.pin, nil
	}
	failpoint.Hit("move.after-swap")
	o.cfg.Metrics.Moved(causeOf(why))
	o.log.Info("pin moved", "room", room, "from", from.Node, "from_fence", from.Fence, "to", next.Node, "to_fence", next.Fence, "why", why)
	o.cfg.Events.Record(events.Event{Kind: events.RoomMoved, Room: room, From: from.Node, To: next.Node, Cause: why, About: next.Fence.String()})
	if !expect.Unreserved {
		o.ledger.keep(room, next, expect)
	}
	return next, nil
}

func (o *Orchestrator) target(view *cluster.View, r *request, from pin.Pin, to ring.NodeID, fence pin.Fence) (cluster.Node, error) {
	need := r.expect.Cost()
	if to != "" {
		return o.named(view, from, to, need)
	}
	node, made := o.pick(view, r, current{pin: from}, need, fence)
	if made.node != "" && !node.Suspect && !node.Unreachable {
		return node, nil
	}
	o.ledger.forget(r.room, fence)
	switch {
	case made.asked == 0 || made.node != "":
		return cluster.Node{}, fmt.Errorf("%w beside %s", ErrNoNodes, from.Node)
	default:
		return cluster.Node{}, &NoHeadroomError{Need: need, Best: made.best}
	}
}

func (o *Orchestrator) named(view *cluster.View, from pin.Pin, to ring.NodeID, need headroom.Egress) (cluster.Node, error) {
	node, known := view.Nodes[to]
	switch {
	case !known:
		return node, &TargetError{to, "no media node of this name lives"}
	case to == from.Node:
		return node, &TargetError{to, "the room is there already"}
	case node.Draining:
		return node, &TargetError{to, string(barDraining)}
	case node.Suspect || node.Unreachable:
		return node, &TargetError{to, "it is not heard"}
	case node.Boot == "" || node.Control == "":
		return node, &TargetError{to, string(barUnknown)}
	}
	if load := o.ledger.loadOf(view, node); !headroom.Takes(load, need, ceilingOf(node)) {
		return node, &NoHeadroomError{Need: need, Best: ceilingOf(node).Minus(load)}
	}
	return node, nil
}

func (l *ledger) loadOf(view *cluster.View, node cluster.Node) headroom.Egress {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.catchUp(view)
	return reported(node).Plus(l.sums[node.Boot])
}
