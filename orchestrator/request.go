package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/waitlist"
)

// request is the state of one call.
type request struct {
	room       ring.RoomID
	expect     headroom.Room
	avoid      avoidance     // empty for Place
	refused    pin.Fence     // under which its node refused the room
	left       time.Duration // of Config.StoreBudget
	evidence   evidence
	why        string          // for the history
	lowest     bool            // see chooseLowest
	claiming   headroom.Egress // cost of the claim under way
	in         pin.Incarnation // of the store's answers; 0 once one was unknown
	unanswered []pin.BootID    // nodes that did not answer

	door      bool            // the room has one
	entry     *waitlist.Entry // nil: nobody, or answered
	admission waitlist.Answer
	entered   pin.Incarnation // of that answer
	asked     *cluster.View   // before that answer
}

// evidence is where the current pin comes from.
type evidence int

const (
	fromMemory evidence = iota // nobody needs to be asked
	fromStore                  // the cache or the owners must confirm it
	restored                   // this call put a remembered pin over a lower one: the owners must confirm it
)

// current is what the store holds for the room.
type current struct {
	pin   pin.Pin // zero: absent or corrupt
	raw   *pin.CorruptError
	owner pin.Pin // a live node that has the room open under another pin
}

func (c current) absent() bool { return c.raw == nil && c.pin.IsZero() }

// ask spends the budget on one exchange. A corrupt pin is an answer.
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
	var wait *waitlist.WaitError
	r.door = r.door || errors.Is(err, waitlist.ErrDoor)
	switch {
	case errors.As(err, &wait):
		return current{}, err
	case errors.As(err, &corrupt):
		return current{raw: corrupt}, nil
	case errors.Is(err, pin.ErrLater):
		return current{}, fmt.Errorf("place room %s: %w", r.room, err)
	case err == nil || errors.Is(err, waitlist.ErrDoor):
		return current{pin: p}, nil
	case ctx.Err() != nil:
		return current{}, fmt.Errorf("place room %s: %w", r.room, ctx.Err())
	default:
		return current{}, fmt.Errorf("%w: %w", ErrStoreUnavailable, err)
	}
}

func (o *Orchestrator) read(ctx context.Context, r *request) (current, error) {
	return r.ask(ctx, func(ctx context.Context) (pin.Pin, error) {
		if r.entry != nil {
			p, _, err := o.enter(ctx, r, pin.Pin{})
			return p, err
		}
		p, _, err := o.store.Get(ctx, r.room)
		return p, err
	})
}

// enter asks once for the person. A corrupt or later pin may come with an answer.
func (o *Orchestrator) enter(ctx context.Context, r *request, next pin.Pin) (pin.Pin, pin.Incarnation, error) {
	asked := o.views.View()
	p, in, answer, err := o.store.Enter(ctx, r.room, next, r.why, *r.entry)
	if corrupt := new(pin.CorruptError); err != nil && !errors.As(err, &corrupt) && !errors.Is(err, pin.ErrLater) {
		return p, in, err
	}
	r.admission, r.entered, r.asked, r.entry = answer, in, asked, nil
	if answer.Outcome < waitlist.Admitted {
		return pin.Pin{}, in, &waitlist.WaitError{Answer: answer}
	}
	return p, in, err
}

// write replaces was if it is current, and returns what is current then.
func (o *Orchestrator) write(ctx context.Context, r *request, was current, next pin.Pin) (current, error) {
	return r.ask(ctx, func(ctx context.Context) (stands pin.Pin, err error) {
		if was.raw != nil {
			return o.store.Repair(ctx, r.room, was.raw.Raw, next)
		}
		var in pin.Incarnation
		switch {
		case was.absent() && r.entry != nil:
			stands, in, err = o.enter(ctx, r, next)
		case was.absent():
			stands, in, err = o.store.Claim(ctx, r.room, next, r.why)
		default:
			stands, in, err = o.store.Swap(ctx, r.room, was.pin, next, r.why)
		}
		if err == nil || errors.Is(err, waitlist.ErrDoor) {
			r.answered(in)
		}
		return stands, err
	})
}

// Unknown is sticky: keep querying every owner.
func (r *request) answered(in pin.Incarnation) {
	if r.evidence == fromMemory || r.in != 0 {
		r.in = in
	}
	r.evidence = max(r.evidence, fromStore)
}
