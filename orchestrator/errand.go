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

// errand is one call of Place, Rehome or PlaceAgain on its way.
type errand struct {
	room    ring.RoomID
	expect  headroom.Room
	avoid   avoidance
	refused pin.Fence     // the fence under which a node refused to open the room
	left    time.Duration // of the store budget
	plain   bool          // a Place: nothing is known of an owner before
	written bool          // the store has answered, in generation in: what it says is to be proven
	in      pin.Generation
	putBack bool         // a pin from memory was put over a lower one: it must be asked again who has the room open
	holder  pin.Pin      // who was found to have the room open while the store has another pin
	mute    []pin.BootID // owners that were asked in this call and did not answer
}

// standing is what the store holds for a room, as far as we were told.
type standing struct {
	pin pin.Pin // zero when absent or corrupt
	raw *pin.CorruptError
}

// absent reports whether the room has no pin at all.
func (s standing) absent() bool { return s.raw == nil && s.pin.IsZero() }

// ask makes one exchange with the store within what is left of the budget. A corrupt pin is an
// answer, every other error means that the store could not say.
func (e *errand) ask(ctx context.Context, exchange func(context.Context) (pin.Pin, error)) (standing, error) {
	if e.left <= 0 {
		return standing{}, fmt.Errorf("place room %s: %w: its budget is used up", e.room, ErrStoreUnavailable)
	}
	bounded, cancel := context.WithTimeout(ctx, e.left)
	defer cancel()
	began := time.Now()
	p, err := exchange(bounded)
	e.left -= time.Since(began)
	var corrupt *pin.CorruptError
	switch {
	case err == nil:
		return standing{pin: p}, nil
	case errors.As(err, &corrupt):
		return standing{raw: corrupt}, nil
	case ctx.Err() != nil:
		return standing{}, fmt.Errorf("place room %s: %w", e.room, ctx.Err())
	default:
		return standing{}, fmt.Errorf("%w: %w", ErrStoreUnavailable, err)
	}
}

// read asks what stands.
func (o *Orchestrator) read(ctx context.Context, e *errand) (standing, error) {
	return e.ask(ctx, func(ctx context.Context) (pin.Pin, error) {
		p, _, err := o.store.Get(ctx, e.room)
		return p, err
	})
}

// write puts next in the place of was, if was still stands, and returns what
// stands afterwards.
func (o *Orchestrator) write(ctx context.Context, e *errand, was standing, next pin.Pin) (standing, error) {
	return e.ask(ctx, func(ctx context.Context) (stands pin.Pin, err error) {
		switch {
		case was.absent():
			var in pin.Generation
			stands, in, err = o.store.Claim(ctx, e.room, next)
			e.learn(in, err)
			return stands, err
		case was.raw != nil:
			return o.store.Repair(ctx, e.room, was.raw.Raw, next)
		default:
			var in pin.Generation
			stands, in, err = o.store.Swap(ctx, e.room, was.pin, next)
			e.learn(in, err)
			return stands, err
		}
	})
}

// learn notes the generation of an answer. One that was not known once stays so: what was asked of everybody is asked
// of everybody again.
func (e *errand) learn(in pin.Generation, err error) {
	if err == nil && (!e.written || e.in != 0) {
		e.in = in
	}
	e.written = e.written || err == nil
}
