package twirp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// Code is one of Twirp's error codes.
type Code string

// The codes that this node answers with.
const (
	InvalidArgument Code = "invalid_argument"
	// FailedPrecondition is for what LiveKit's server allows only in a configuration that Holdfast has not.
	FailedPrecondition Code = "failed_precondition"
	Malformed          Code = "malformed"
	NotFound           Code = "not_found"
	BadRoute           Code = "bad_route"
	Unauthenticated    Code = "unauthenticated"
	ResourceExhausted  Code = "resource_exhausted"
	Unimplemented      Code = "unimplemented"
	Unavailable        Code = "unavailable"
	Internal           Code = "internal"
)

// Error is an answer of Twirp's that is none of the method's.
type Error struct {
	Code Code
	// Message is a sentence for the application's developer.
	Message string
	// Route is the request that a BadRoute was, or nothing.
	Route string
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

func errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// status is that of Twirp's specification.
func (c Code) status() int {
	switch c {
	case InvalidArgument, Malformed:
		return http.StatusBadRequest
	case FailedPrecondition:
		return http.StatusPreconditionFailed
	case NotFound, BadRoute:
		return http.StatusNotFound
	case Unauthenticated:
		return http.StatusUnauthorized
	case ResourceExhausted:
		return http.StatusTooManyRequests
	case Unimplemented:
		return http.StatusNotImplemented
	case Unavailable:
		return http.StatusServiceUnavailable
	case Internal:
	}
	return http.StatusInternalServerError
}

// errorOf turns any error into Twirp's. What a token does not allow is unauthenticated, as with LiveKit.
func errorOf(err error) *Error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	told := reply.Of(err)
	code := Internal
	switch told.Code {
	case wire.CodeBadToken, wire.CodeTokenExpired, wire.CodeNotAllowed:
		code = Unauthenticated
	case wire.CodeBadRoom, wire.CodeBadMessage:
		code = InvalidArgument
	case wire.CodeUnknownPerson, wire.CodeUnknownRoom:
		code = NotFound
	case wire.CodeTooManyMessages:
		code = ResourceExhausted
	default:
		if told.Retryable && told.Code != wire.CodeInternal {
			code = Unavailable
		}
	}
	return &Error{Code: code, Message: told.Message}
}

func refuse(w http.ResponseWriter, err error) {
	e := errorOf(err)
	body := struct {
		Code Code              `json:"code"`
		Msg  string            `json:"msg"`
		Meta map[string]string `json:"meta,omitempty"`
	}{Code: e.Code, Msg: e.Message}
	if e.Route != "" {
		body.Meta = map[string]string{"twirp_invalid_route": e.Route}
	}
	text, err := json.Marshal(body)
	if err != nil { // a struct of texts
		text = []byte(`{"code":"internal"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Code.status())
	_, _ = w.Write(text)
}
