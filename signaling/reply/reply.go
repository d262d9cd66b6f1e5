// Package reply turns errors into what a client hears: the fault of a socket, or the answer to a request. Nothing else does so,
// and a client never hears an address or the store's words: they stay in the log. The package's table has the faults of the
// errors that packages below signaling declare; those packages know no client.
package reply

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/people/messaging"
	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const retryAfter = time.Second

// Of returns what a client hears of an error on its socket. An error without a fault is CodeInternal.
func Of(err error) *wire.Error {
	found := fault.Find(err, faultOfOthers)
	if found == nil {
		found = fault.Coded(wire.CodeInternal, err.Error())
	}
	meaning := wire.MeaningOf(found.Code())
	answer := &wire.Error{Code: meaning.Code, Message: found.Told(err), Retryable: meaning.Retryable}
	if answer.Retryable {
		answer.RetryAfterMs = retryAfter.Milliseconds()
	}
	return answer
}

// faultOfOthers returns the fault of an error of a package that knows no client, or nil.
func faultOfOthers(err error) *fault.Fault {
	if wait, ok := errors.AsType[*waitlist.WaitError](err); ok {
		return faultOfWait(wait.Answer.Place.Reason, wait.Error())
	}
	if full, ok := errors.AsType[*orchestrator.NoHeadroomError](err); ok {
		return fault.Coded(wire.CodeNoCapacity, full.Error())
	}
	if target, ok := errors.AsType[*orchestrator.TargetError](err); ok {
		return fault.New(wire.CodeMoveRefused, target.Error(), "Name another node, or none; `holdfast nodes` lists them.")
	}
	for _, row := range []struct {
		err   error
		fault func(text string) *fault.Fault
	}{
		{wire.ErrUnknownType, coded(wire.CodeUnknownType)},
		{wire.ErrMalformed, detailed(wire.CodeBadMessage, "Check it against the protocol.")},
		{orchestrator.ErrNotSettled, coded(wire.CodeNotReady)},
		{orchestrator.ErrNoNodes, coded(wire.CodeNoNodes)},
		{orchestrator.ErrStoreUnavailable, coded(wire.CodeStoreUnavailable)},
		{orchestrator.ErrContended, coded(wire.CodeStoreUnavailable)},
		{pin.ErrLater, own(wire.CodeNotReady, "Try again: another signaling node may let you in.")},
		{presence.ErrTooManyWatches, own(wire.CodeTooManyMessages, "Watch fewer, or try again later.")},
		{messaging.ErrFull, detailed(wire.CodeTooManyMessages, "")},
	} {
		if errors.Is(err, row.err) {
			return row.fault(row.err.Error())
		}
	}
	return nil
}

// A client hears the sentence of the code.
func coded(code wire.Code) func(string) *fault.Fault {
	return func(text string) *fault.Fault { return fault.Coded(code, text) }
}

// A client hears the error's own text and the advice.
func own(code wire.Code, advice string) func(string) *fault.Fault {
	return func(text string) *fault.Fault { return fault.New(code, text, advice) }
}

// A client hears the text of the error and of what wraps it, and the advice.
func detailed(code wire.Code, advice string) func(string) *fault.Fault {
	return func(text string) *fault.Fault { return fault.Detailed(code, text, advice) }
}

func faultOfWait(reason waitlist.Reason, text string) *fault.Fault {
	switch reason {
	case waitlist.Closed:
		return fault.Coded(wire.CodeRoomClosed, text)
	case waitlist.NoCapacity:
		return fault.Coded(wire.CodeNoCapacity, text)
	default:
		return fault.Coded(wire.CodeRoomFull, text)
	}
}

// Refusal is the body of a request's answer that refuses.
type Refusal struct {
	Code      wire.Code `json:"code"`
	Message   string    `json:"message"`
	Retryable bool      `json:"retryable"`
}

// Refuse answers a request with what a client hears of an error.
func Refuse(w http.ResponseWriter, err error) {
	RefuseWith(w, err, func(refusal Refusal) any { return refusal })
}

// RefuseWith is Refuse with a body that has the fields of the Refusal and further ones.
func RefuseWith(w http.ResponseWriter, err error, body func(Refusal) any) {
	answer := Of(err)
	status := wire.MeaningOf(answer.Code).Status
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if answer.Retryable {
		w.Header().Set("Retry-After", "1")
	}
	JSON(w, status, body(Refusal{Code: answer.Code, Message: answer.Message, Retryable: answer.Retryable}))
}

// JSON answers a request with a body in JSON.
func JSON(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		// A Refusal can always be encoded.
		status = http.StatusInternalServerError
		meaning := wire.MeaningOf(wire.CodeInternal)
		text, _ = json.Marshal(Refusal{Code: meaning.Code, Message: meaning.Sentence, Retryable: meaning.Retryable})
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(text, '\n'))
}

// Text answers a request with a line of text.
func Text(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(text + "\n"))
}
