package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/traces"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

type request struct {
	room   ring.RoomID
	expect headroom.Room
	avoid  avoidance
	// refused is the fence of the pin that its own node would not open.
	refused pin.Fence
	// left is the part of Config.StoreBudget that is not used up yet.
	left     time.Duration
	evidence evidence
	why      string
	// lowest permits chooseLowest.
	lowest bool
	// claiming is the egress that the ledger counts for this request's claim. It is zero when no claim is under way.
	claiming headroom.Egress
	// in is the incarnation of the store's answers. It stays 0 once an answer came from an unknown one.
	in         pin.Incarnation
	unanswered []pin.BootID

	// claimed is the fence of the last claim that was tried.
	claimed pin.Fence

	door bool
	// entry is the person at the door. It is nil if there is none, or if the door has answered.
	entry     *waitlist.Entry
	admission waitlist.Answer
	// entered is the incarnation in which the door answered.
	entered pin.Incarnation
	// asked is the view of the cluster from before the door was asked.
	asked *cluster.View
}

type evidence int

const (
	// fromMemory is a pin that this process knew already. It needs no confirmation.
	fromMemory evidence = iota
	// fromStore is a pin that the store showed. The cache or the owners must confirm it.
	fromStore
	// restored is a pin from the cache that was written over a lower one. The owners must confirm it.
	restored
)

type current struct {
	// pin is zero if there is none or it is corrupt.
	pin pin.Pin
	raw *pin.CorruptError
	// owner is the pin of a node that has the room open under another pin than the store's.
	owner pin.Pin
}

func (c current) absent() bool { return c.raw == nil && c.pin.IsZero() }

// ask calls exchange within the store budget and turns its errors into placement's. A corrupt pin is an answer and no
// error.
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
		// With a damaged pin anybody may own the room, in any incarnation. So all owners are asked, before the repair
		// and after it.
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

// enter asks the door once for each request. The answer may come together with a corrupt pin or a pin.ErrLater.
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

// writeTraced is write, as a step of the placement's trace.
func (o *Orchestrator) writeTraced(ctx context.Context, r *request, was current, next pin.Pin) (current, error) {
	step := "swap pin"
	if was.absent() {
		step = "claim room"
	}
	ctx, span := traces.Call(ctx, step)
	now, err := o.write(ctx, r, was, next)
	span.Set("wanted", string(next.Node)).Set("stands", string(now.pin.Node)).End(err)
	return now, err
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

// answered notes the incarnation of a store's answer. Unknown is sticky: after one answer from an unknown incarnation
// every owner is asked.
func (r *request) answered(in pin.Incarnation) {
	if r.evidence == fromMemory || r.in != 0 {
		r.in = in
	}
	r.evidence = max(r.evidence, fromStore)
}
