package sfu

import (
	"errors"
	"fmt"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/pin"
)

// refusal is why an Attach or a message was refused.
type refusal struct {
	code    control.Refusal
	message string
	// current is the fence that the room has, zero if unknown.
	current pin.Fence
	// ended says, of a removal, that the call was ended for everybody.
	ended bool
	// place is where to attach instead, with REFUSAL_ELSEWHERE.
	place *control.Place
}

func refuse(code control.Refusal, format string, args ...any) *refusal {
	return &refusal{code: code, message: fmt.Sprintf(format, args...)}
}

func fenced(current pin.Fence) *refusal {
	return &refusal{
		code: control.Refusal_REFUSAL_FENCED, current: current,
		message: fmt.Sprintf("the room has the higher fence %v", current),
	}
}

func notHere() *refusal {
	return refuse(control.Refusal_REFUSAL_NOT_HERE, "the peer is neither in the room nor expected there")
}

func elsewhere(place *control.Place) *refusal {
	return &refusal{code: control.Refusal_REFUSAL_ELSEWHERE, place: place, message: "the peer's place is at node " + place.GetNode()}
}

func unconfirmed(err error) *refusal {
	// A refusal that names no fence has the room just placed again.
	if errors.Is(err, pin.ErrMissing) {
		return refuse(control.Refusal_REFUSAL_FENCED, "the pin does not stand: %v", err)
	}
	if !errors.Is(err, pin.ErrFenced) {
		return refuse(control.Refusal_REFUSAL_UNCONFIRMED, "the pin cannot be confirmed just now: %v", err)
	}
	if known, ok := errors.AsType[*pin.FencedError](err); ok {
		return fenced(known.Current.Fence)
	}
	return refuse(control.Refusal_REFUSAL_FENCED, "the room has a higher fence")
}

// reason is the refusal's code as an error, or nil for no refusal. Unlike the message it names nobody.
func (r *refusal) reason() error {
	if r == nil {
		return nil
	}
	return errors.New(r.code.String())
}

func (r *refusal) event() *control.PeerEvent {
	refused := &control.Refused{Code: r.code, Message: r.message, Ended: r.ended, Elsewhere: r.place}
	event := &control.PeerEvent{Event: &control.PeerEvent_Refused{Refused: refused}}
	if !r.current.IsZero() {
		refused.Current = control.FenceProto(r.current)
		event.Fence = refused.Current
	}
	return event
}
