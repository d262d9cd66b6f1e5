package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// maxBodyBytes bounds the bodies of all requests but messages.
const maxBodyBytes = 1 << 10

// readBody decodes the one JSON object of a request's body; an empty body leaves into as it is. A field that into does not have is refused, so
// that a misspelt order is never carried out in part. shape says in an error what the body should be, for example "{node?}". Errors name
// JSON, never Go types.
func readBody(r *http.Request, most int64, shape string, into any) error {
	text, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, most))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return fault.Sayf(wire.CodeTooLarge, "The body has more than %d bytes. Send less at once.", tooLarge.Limit)
	}
	if err != nil {
		return fmt.Errorf("%w: the body did not arrive", wire.ErrMalformed)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(into)
	if err == nil && decoder.More() {
		err = errMoreThanOne
	}
	if err != nil {
		return fmt.Errorf("%w: the body is not %s: %s", wire.ErrMalformed, shape, sayDecoding(err))
	}
	return nil
}

var errMoreThanOne = errors.New("something follows the object")

// sayDecoding says what is wrong with JSON in the words of its sender.
func sayDecoding(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrong.Field == "" {
			return "it is a " + wrong.Value + ", not an object"
		}
		return fmt.Sprintf("%s cannot be the %s there", wrong.Field, wrong.Value)
	}
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("it is no JSON at byte %d", wrong.Offset)
	}
	switch text := err.Error(); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "it ends too soon"
	case errors.Is(err, errMoreThanOne), errors.Is(err, wire.ErrMalformed):
		return text
	case strings.HasPrefix(text, "json: unknown field "):
		return "it has the unknown field " + strings.TrimPrefix(text, "json: unknown field ")
	default:
		return "a field has a value that it cannot have"
	}
}
