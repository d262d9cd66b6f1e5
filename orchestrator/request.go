package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// request is one call of Place, Rehome or PlaceAgain.
type request struct {
	room       ring.RoomID
	expect     headroom.Room
	avoid      avoidance     // empty for Place
	refused    pin.Fence     // the fence under which a node refused to open the room
	left       time.Duration // of the store budget
	evidence   evidence
	in         pin.Incarnation // of the store's answers; zero once one was unknown
	unanswered []pin.BootID    // owners that did not answer in this call
}

// evidence is what may vouch for the pin that stands.
type evidence int

const (
	fromMemory evidence = iota // the pin is as this process remembers it: nobody needs to be asked
	fromStore                  // the store gave the pin: the pin cache or the owners must confirm it
	restored                   // this call put a remembered pin over a lower one: the owners must confirm it
)

// current is what the store holds for a room, as far as this process was told.
type current struct {
	pin   pin.Pin // zero when absent or corrupt
	raw   *pin.CorruptError
	owner pin.Pin // of a live node that has the room open although the pin says otherwise, or zero
}

// absent reports whether the room has no pin at all.
func (c current) absent() bool { return c.raw == nil && c.pin.IsZero() }

// ask makes one exchange with the store within what is left of the budget. A corrupt pin is an
// answer. Any other error means that the store could not say.
func (r *request) ask(ctx context.Context, exchange func(context.Context) (pin.Pin, error)) (current, error) {
	if r.left <= 0 {
		return current{}, fmt.Errorf("place room %s: %w: its budget is used up", r.room, ErrStoreUnavailable)
	}
	bounded, cancel := context.WithTimeout(ctx, r.left)
	defer cancel()
	began := time.Now()
	p, err := exchange(bounded)
	r.left -= time.Since(began)
	var corrupt *pin.CorruptError
	switch {
	case err == nil:
		return current{pin: p}, nil
	case errors.As(err, &corrupt):
		return current{raw: corrupt}, nil
	case ctx.Err() != nil:
		return current{}, fmt.Errorf("place room %s: %w", r.room, ctx.Err())
	default:
		return current{}, fmt.Errorf("%w: %w", ErrStoreUnavailable, err)
	}
}

func (o *Orchestrator) read(ctx context.Context, r *request) (current, error) {
	return r.ask(ctx, func(ctx context.Context) (pin.Pin, error) {
		p, _, err := o.store.Get(ctx, r.room)
		return p, err
	})
}

// write replaces was by next if was still stands, and returns what stands afterwards.
func (o *Orchestrator) write(ctx context.Context, r *request, was current, next pin.Pin) (current, error) {
	return r.ask(ctx, func(ctx context.Context) (stands pin.Pin, err error) {
		if was.raw != nil {
			return o.store.Repair(ctx, r.room, was.raw.Raw, next)
		}
		var in pin.Incarnation
		if was.absent() {
			stands, in, err = o.store.Claim(ctx, r.room, next)
		} else {
			stands, in, err = o.store.Swap(ctx, r.room, was.pin, next)
		}
		if err == nil {
			r.answered(in)
		}
		return stands, err
	})
}

// answered notes that the store gave a pin in incarnation in. Unknown (zero) is sticky: keep asking every owner.
func (r *request) answered(in pin.Incarnation) {
	if r.evidence == fromMemory || r.in != 0 {
		r.in = in
	}
	r.evidence = max(r.evidence, fromStore)
}
