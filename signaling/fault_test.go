package signaling

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestEveryFaultSaysWhatWasWrongAndWhatToDo walks every error that a person can
// cause: its code, and a message of two sentences at least.
func TestEveryFaultSaysWhatWasWrongAndWhatToDo(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want wire.Code
		word string // of the message
	}{
		{access.ErrExpired, wire.CodeTokenExpired, "expired"},
		{access.ErrForged, wire.CodeBadToken, "new one"},
		{access.ErrUnknownKey, wire.CodeBadToken, "new one"},
		{access.ErrNotJoin, wire.CodeNotAllowed, "joining"},
		{access.ErrOtherRoom, wire.CodeNotAllowed, "another room"},
		{access.ErrNotAdmin, wire.CodeNotAllowed, "roomAdmin"},
		{fmt.Errorf("%w: it contains U+200B", access.ErrBadRoom), wire.CodeBadRoom, "U+200B"},
		{fmt.Errorf("%w: it is not UTF-8", wire.ErrMalformed), wire.CodeBadMessage, "not UTF-8"},
		{fmt.Errorf("%w %q", wire.ErrUnknownType, "dance"), wire.CodeUnknownType, "ignored"},
		{errOrder, wire.CodeBadMessage, "first message"},
		{errNoFirst, wire.CodeBadMessage, "in time"},
		{errTongue, wire.CodeBadMessage, wire.Subprotocol},
		{errFlood, wire.CodeTooManyMessages, "Slow down"},
		{errManyOffers, wire.CodeTooManyMessages, "offers"},
		{errRestless, wire.CodeTooManySockets, "too often"},
		{errCrowded, wire.CodeTooManySockets, "Wait"},
		{errFull, wire.CodeTooManySockets, "Wait"},
		{errResumeExpired, wire.CodeResumeExpired, "Join again"},
		{fmt.Errorf("%w: %w", errForgedResume, access.ErrForged), wire.CodeBadToken, "resume token"},
		{&sfulink.RefusedError{Code: control.Refusal_REFUSAL_ROOM_FULL}, wire.CodeRoomFull, "full"},
		{&sfulink.RefusedError{Code: control.Refusal_REFUSAL_BAD_REQUEST}, wire.CodeInternal, "Try again"},
		{&orchestrator.NoHeadroomError{}, wire.CodeNoCapacity, "Try again"},
		{orchestrator.ErrStoreUnavailable, wire.CodeStoreUnavailable, "Try again"},
		{orchestrator.ErrNotSettled, wire.CodeNotReady, "Try again"},
		{errStopping, wire.CodeNotReady, "Try again"},
	} {
		fault := faultOf(fmt.Errorf("somewhere: %w", tc.err))
		if fault.Code != tc.want || !strings.Contains(fault.Message, tc.word) {
			t.Errorf("%v is told as %+v, want %s with %q", tc.err, fault, tc.want, tc.word)
		}
		if strings.Count(fault.Message+" ", ". ") < 2 || !strings.HasSuffix(fault.Message, ".") {
			t.Errorf("%v: %q does not say both what was wrong and what to do", tc.err, fault.Message)
		}
	}
}
