package fault

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

var (
	errOutside = errors.New("word of the store")
	errLimit   = New(wire.CodeTooManyMessages, "too many offers", "Slow down.")
	errToken   = Detailed(wire.CodeBadToken, "the token cannot be used", "Ask for another.")
	errGone    = Coded(wire.CodeResumeExpired, "the resume token has expired")
)

type typedError struct{ cause error }

func (e *typedError) Error() string { return "typed" }
func (e *typedError) Unwrap() error { return e.cause }
func (e *typedError) Fault() *Fault { return errGone }

func TestTheClientHearsTheFaultThatTheErrorNamesLast(t *testing.T) {
	const gone = "This session can no longer be resumed. Join again."
	for name, tc := range map[string]struct {
		err  error
		code wire.Code
		told string
	}{
		"its own text":           {fmt.Errorf("offer 7: %w", errLimit), wire.CodeTooManyMessages, "Too many offers. Slow down."},
		"the whole text":         {fmt.Errorf("%w: it is too long", errToken), wire.CodeBadToken, "The token cannot be used: it is too long. Ask for another."},
		"the code's sentence":    {fmt.Errorf("open: %w", errGone), wire.CodeResumeExpired, gone},
		"the cause":              {fmt.Errorf("%w: %w", errGone, errLimit), wire.CodeTooManyMessages, "Too many offers. Slow down."},
		"despite its cause":      {fmt.Errorf("enter: %w", errGone.Over(errLimit)), wire.CodeResumeExpired, gone},
		"of a type":              {&typedError{}, wire.CodeResumeExpired, gone},
		"of a type, with cause":  {&typedError{errLimit}, wire.CodeTooManyMessages, "Too many offers. Slow down."},
		"of another package":     {fmt.Errorf("place: %w", errOutside), wire.CodeNoNodes, "one."},
		"another package's wrap": {fmt.Errorf("%w: %w", errGone, errOutside), wire.CodeNoNodes, "one."},
		"word for word":          {Sayf(wire.CodeNoNodes, "sfu-%d is alone.", 1), wire.CodeNoNodes, "sfu-1 is alone."},
	} {
		found := Find(tc.err, func(err error) *Fault {
			if errors.Is(err, errOutside) {
				return Sayf(wire.CodeNoNodes, "one.")
			}
			return nil
		})
		if found == nil || found.Code() != tc.code || found.Told(tc.err) != tc.told {
			t.Errorf("%s: %v is told as %+v, want %s and %q", name, tc.err, found, tc.code, tc.told)
		}
	}
	if found := Find(errOutside, func(error) *Fault { return nil }); found != nil {
		t.Errorf("an unknown error is told as %+v", found)
	}
	over := errGone.Over(errLimit)
	if !errors.Is(over, errGone) || !errors.Is(over, errLimit) || over.Error() != errors.Join(errGone, errLimit).Error() {
		t.Errorf("%v does not wrap both", over)
	}
}
