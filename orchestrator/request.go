package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

type request struct {
	room       ring.RoomID
	expect     headroom.Room
	avoid      avoidance
	refused    pin.Fence     // by its node
	left       time.Duration // of Config.StoreBudget
	evidence   evidence
	why        string
	lowest     bool            // permits chooseLowest
	claiming   headroom.Egress // cost, under way
	in         pin.Incarnation // of the answers; 0 once one was unknown
	unanswered []pin.BootID

	door      bool
	entry     *waitlist.Entry // nil: nobody, or answered
	admission waitlist.Answer
	entered   pin.Incarnation // incarnation of admission
	asked     *cluster.View   // the view before admission
}

type evidence int

const (
	fromMemory evidence = iota // needs no confirmation
	fromStore                  // the cache or owners confirm it
	restored                   // from the cache over a lower one: owners confirm it
)

type current struct {
	pin   pin.Pin // zero: absent or corrupt
	raw   *pin.CorruptError
	owner pin.Pin // has the room open under another pin
}

func (c current) absent() bool { return c.raw == nil && c.pin.IsZero() }

// A corrupt pin is an answer.
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
		// Anybody may own the room, in any incarnation: all owners are asked before the repair and after it.
		r.in, r.evidence = 0, max(r.evidence, fromStore)
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

// enter asks once. A corrupt or later pin may come with an answer.
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
