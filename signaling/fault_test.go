package signaling

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/rest"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestATokenThatDoesNotFitSaysWhy: tokens in LiveKit's form, well signed, that whoever writes the
// token server has to change.
func TestATokenThatDoesNotFitSaysWhy(t *testing.T) {
	r := newRig(t)
	e := r.signalingNode(nil)
	video := map[string]any{"room": "lobby", "roomJoin": true}
	for name, tc := range map[string]struct {
		change map[string]any
		code   wire.Code
		words  []string
	}{
		"3,000 bytes of metadata":   {map[string]any{"metadata": strings.Repeat("m", 3000)}, wire.CodeBadToken, []string{"metadata", "3000", "2048"}},
		"7,000 bytes of attributes": {map[string]any{"attributes": map[string]string{"a": strings.Repeat("x", 7000)}}, wire.CodeBadToken, []string{"bytes", "8192", "attributes"}},
		"no identity":               {map[string]any{"sub": ""}, wire.CodeNotAllowed, []string{"identity", "sub"}},
		"a hidden identity":         {map[string]any{"sub": "ada\u202e"}, wire.CodeBadToken, []string{"identity", "U+202E"}},
		"a name of a novel":         {map[string]any{"name": strings.Repeat("n", 300)}, wire.CodeBadToken, []string{"name", "300", "256"}},
		"no expiry":                 {map[string]any{"exp": nil}, wire.CodeBadToken, []string{"exp"}},
		"tomorrow":                  {map[string]any{"nbf": time.Now().Add(24 * time.Hour).Unix()}, wire.CodeBadToken, []string{"not valid yet", "nbf"}},
	} {
		claims := map[string]any{"iss": apiKey, "sub": "ada", "exp": time.Now().Add(time.Hour).Unix(), "video": video}
		maps.Copy(claims, tc.change)
		if claims["exp"] == nil {
			delete(claims, "exp")
		}
		c := e.dial()
		c.say(&wire.Join{Token: signed(t, claims)})
		fault := hear[*wire.Error](c)
		if fault.Code != tc.code {
			t.Errorf("%s: %+v, want %s", name, fault, tc.code)
		}
		for _, word := range tc.words {
			if !strings.Contains(fault.Message, word) {
				t.Errorf("%s is told as %q, want %q in it", name, fault.Message, word)
			}
		}
	}
}

// signed is a token with any claims (RFC 7515, appendix A.1).
func signed(t *testing.T, claims map[string]any) string {
	t.Helper()
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	text := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + base64.RawURLEncoding.EncodeToString(payload)
	mac := hmac.New(sha256.New, []byte(apiSecret))
	mac.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

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
		{fmt.Errorf("%w: it is too long", access.ErrUnfit), wire.CodeBadToken, "too long"},
		{access.ErrNoIdentity, wire.CodeNotAllowed, "identity"},
		{access.ErrNotJoin, wire.CodeNotAllowed, "joining"},
		{access.ErrOtherRoom, wire.CodeNotAllowed, "another room"},
		{access.ErrNotAdmin, wire.CodeNotAllowed, "roomAdmin"},
		{access.ErrNotCluster, wire.CodeNotAllowed, "roomList"},
		{access.ErrNotClusterAdmin, wire.CodeNotAllowed, "clusterAdmin"},
		{access.ErrCheck, wire.CodeNotAllowed, "connection test"},
		{rest.ErrNoCheck, wire.CodeNotAllowed, "roomCreate"},
		{rest.ErrCollecting, wire.CodeTooManyMessages, "garbage"},
		{fmt.Errorf("%w: it contains U+200B", access.ErrBadRoom), wire.CodeBadRoom, "U+200B"},
		{fmt.Errorf("%w: it is not UTF-8", wire.ErrMalformed), wire.CodeBadMessage, "not UTF-8"},
		{fmt.Errorf("%w %q", wire.ErrUnknownType, "dance"), wire.CodeUnknownType, "ignored"},
		{errOrder, wire.CodeBadMessage, "first message"},
		{errNoFirst, wire.CodeBadMessage, "in time"},
		{errTongue, wire.CodeBadMessage, wire.Subprotocol},
		{limits.ErrFlood, wire.CodeTooManyMessages, "Slow down"},
		{errManyOffers, wire.CodeTooManyMessages, "offers"},
		{limits.ErrTooOften, wire.CodeTooManySockets, "too often"},
		{errCrowded, wire.CodeTooManySockets, "Wait"},
		{errFull, wire.CodeTooManySockets, "Wait"},
		{errResumeExpired, wire.CodeResumeExpired, "Join again"},
		{errForgedResume.Over(access.ErrForged), wire.CodeBadToken, "resume token"},
		{&sfulink.RefusedError{Code: control.Refusal_REFUSAL_ROOM_FULL}, wire.CodeRoomFull, "full"},
		{&sfulink.RefusedError{Code: control.Refusal_REFUSAL_BAD_REQUEST}, wire.CodeInternal, "Try again"},
		{&orchestrator.NoHeadroomError{}, wire.CodeNoCapacity, "Try again"},
		{orchestrator.ErrStoreUnavailable, wire.CodeStoreUnavailable, "Try again"},
		{orchestrator.ErrNotSettled, wire.CodeNotReady, "Try again"},
		{errStopping, wire.CodeNotReady, "Try again"},
		{pin.ErrLater, wire.CodeNotReady, "newer nodes"},
	} {
		fault := reply.Of(fmt.Errorf("somewhere: %w", tc.err))
		if fault.Code != tc.want || !strings.Contains(fault.Message, tc.word) {
			t.Errorf("%v is told as %+v, want %s with %q", tc.err, fault, tc.want, tc.word)
		}
		if strings.Count(fault.Message+" ", ". ") < 2 || !strings.HasSuffix(fault.Message, ".") {
			t.Errorf("%v: %q does not say both what was wrong and what to do", tc.err, fault.Message)
		}
	}
}
