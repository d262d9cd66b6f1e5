package signaling

import (
	"errors"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/people/messaging"
	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/door"
	"github.com/holdfast-rtc/holdfast/signaling/endings"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/moderation"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

var (
	errOrder         = errors.New("the first message must be join, resume or connect, and only the first")
	errNoFirst       = errors.New("neither join, resume nor connect came in time")
	errFlood         = errors.New("too many messages")
	errResumeExpired = errors.New("the resume token has expired")
	errWithdrawn     = errors.New("the API key that opened this session is not valid any more")
	errForgedResume  = errors.New("the resume token is not genuine")
	errManyOffers    = errors.New("too many offers")
	errTooOften      = errors.New("this identity joins too often")
	errCollecting    = errors.New("the garbage of that process is collected too often")
)

const retryAfter = time.Second

// faultOf alone turns errors into what clients see. Addresses and the store's words stay in the log.
func faultOf(err error) *wire.Error {
	meaning := wire.MeaningOf(codeOf(err))
	fault := &wire.Error{Code: meaning.Code, Message: messageOf(err, meaning), Retryable: meaning.Retryable}
	if fault.Retryable {
		fault.RetryAfterMs = retryAfter.Milliseconds()
	}
	return fault
}

func messageOf(err error, meaning wire.Meaning) string {
	switch {
	case struck(err):
		return sentenceOf(errStruck) + " Try again in ten minutes, with another client."
	case errors.Is(err, errForgedResume):
		return sentenceOf(errForgedResume) + " Join again."
	case errors.Is(err, errCollecting):
		return sentenceOf(errCollecting) + " Wait a moment, then try again."
	case errors.Is(err, errManyOffers):
		return sentenceOf(errManyOffers) + " Slow down."
	case errors.Is(err, presence.ErrTooManyWatches):
		return sentenceOf(presence.ErrTooManyWatches) + " Watch fewer, or try again later."
	case errors.Is(err, errManyWatches):
		return sentenceOf(errManyWatches) + " Slow down."
	case errors.Is(err, moderation.ErrAskedAlready):
		return sentenceOf(moderation.ErrAskedAlready) + " Wait for an answer."
	case errors.Is(err, pin.ErrLater):
		return sentenceOf(pin.ErrLater) + " Try again: another signaling node may let you in."
	case errors.Is(err, moderation.ErrNotHere), errors.Is(err, errUnseen):
		return sentenceOf(err)
	case errors.Is(err, messaging.ErrFull):
		return sentenceOf(err)
	case errors.Is(err, door.ErrNotWaiting):
		return sentenceOf(door.ErrNotWaiting)
	case errors.Is(err, errTooOften):
		return sentenceOf(errTooOften) + " Wait a moment, then try again."
	}
	if spent, ok := errors.AsType[*limits.QuotaError](err); ok {
		return sentenceOf(spent) + " Wait a moment, then try again."
	}
	if errors.Is(err, access.ErrUnfit) {
		return sentenceOf(err) + " Ask the application for another token."
	}
	switch meaning.Code {
	case wire.CodeBadMessage:
		return sentenceOf(err) + " Check it against the protocol."
	case wire.CodeBadRoom:
		return sentenceOf(err) + " Choose another name."
	case wire.CodeNotAllowed:
		return sentenceOf(err) + " Ask the application for another token."
	default:
		return meaning.Sentence
	}
}

// struck reports whether a media node refuses this peer because its input broke it.
func struck(err error) bool {
	refused, ok := errors.AsType[*sfulink.RefusedError](err)
	return errors.Is(err, errStruck) || ok && refused.Code == control.Refusal_REFUSAL_BROKE
}

// lacksGrant: the message says what the token lacks.
func lacksGrant(err error) bool {
	return slices.ContainsFunc([]error{
		errNotModerator, access.ErrNoIdentity, access.ErrNotJoin, access.ErrOtherRoom, access.ErrNotAdmin,
		access.ErrCheck, errNoCheck, access.ErrNotCluster, access.ErrNotClusterAdmin, errNotPublished,
		errNoChat, errNoMessages, errNoRename, errNoRoom, errNoWatch,
		errUnseen, moderation.ErrNotHere, errStruck,
	}, func(refusal error) bool { return errors.Is(err, refusal) })
}

func codeOf(err error) wire.Code {
	if code := codeOfType(err); code != "" {
		return code
	}
	if lacksGrant(err) {
		return wire.CodeNotAllowed
	}
	for _, row := range []struct {
		err  error
		code wire.Code
	}{
		{errResumeExpired, wire.CodeResumeExpired},
		{errWithdrawn, wire.CodeResumeExpired},
		{endings.ErrLeft, wire.CodeResumeExpired},
		{endings.ErrKicked, wire.CodeKicked},
		{errTurnedAway, wire.CodeTurnedAway},
		{access.ErrExpired, wire.CodeTokenExpired},
		{access.ErrForged, wire.CodeBadToken},
		{access.ErrUnknownKey, wire.CodeBadToken},
		{access.ErrUnfit, wire.CodeBadToken},
		{errManyWatches, wire.CodeTooManyMessages},
		{moderation.ErrAskedAlready, wire.CodeTooManyMessages},
		{errCollecting, wire.CodeTooManyMessages},
		{access.ErrBadRoom, wire.CodeBadRoom},
		{wire.ErrUnknownType, wire.CodeUnknownType},
		{wire.ErrMalformed, wire.CodeBadMessage},
		{errOrder, wire.CodeBadMessage},
		{errNoFirst, wire.CodeBadMessage},
		{errTongue, wire.CodeBadMessage},
		{errFlood, wire.CodeTooManyMessages},
		{errManyOffers, wire.CodeTooManyMessages},
		{errTooOften, wire.CodeTooManySockets},
		{errCrowded, wire.CodeTooManySockets},
		{errFull, wire.CodeTooManySockets},
		{orchestrator.ErrNotSettled, wire.CodeNotReady},
		{errStopping, wire.CodeNotReady},
		{errCutOff, wire.CodeNotReady},
		{errUnheard, wire.CodeNotReady},
		{orchestrator.ErrNoNodes, wire.CodeNoNodes},
		{orchestrator.ErrStoreUnavailable, wire.CodeStoreUnavailable},
		{orchestrator.ErrContended, wire.CodeStoreUnavailable},
		{sfulink.ErrUnreachable, wire.CodeNodeUnreachable},
		{sfulink.ErrStuck, wire.CodeNodeUnreachable},
	} {
		if errors.Is(err, row.err) {
			return row.code
		}
	}
	return wire.CodeInternal
}

// codeOfType is empty for errors told by value.
func codeOfType(err error) wire.Code {
	if errors.Is(err, endings.ErrRemovedUser) {
		return wire.CodeKicked
	}
	if refused, ok := errors.AsType[*sfulink.RefusedError](err); ok {
		return codeOfRefusal(refused.Code)
	}
	if _, ok := errors.AsType[*limits.QuotaError](err); ok {
		return wire.CodeTooManySockets
	}
	if wait, ok := errors.AsType[*waitlist.WaitError](err); ok && !errors.Is(err, errResumeExpired) {
		return codeOfReason(wait.Answer.Place.Reason)
	}
	if errors.Is(err, pin.ErrLater) {
		return wire.CodeNotReady
	}
	if errors.Is(err, messaging.ErrFull) {
		return wire.CodeTooManyMessages
	}
	if _, ok := errors.AsType[*orchestrator.NoHeadroomError](err); ok {
		return wire.CodeNoCapacity
	}
	return ""
}

func codeOfReason(reason waitlist.Reason) wire.Code {
	switch reason {
	case waitlist.Closed:
		return wire.CodeRoomClosed
	case waitlist.NoCapacity:
		return wire.CodeNoCapacity
	default:
		return wire.CodeRoomFull
	}
}

func codeOfRefusal(code control.Refusal) wire.Code {
	switch code {
	case control.Refusal_REFUSAL_ROOM_FULL:
		return wire.CodeRoomFull
	case control.Refusal_REFUSAL_STALE_GENERATION:
		return wire.CodeSuperseded
	case control.Refusal_REFUSAL_REMOVED:
		return wire.CodeKicked
	case control.Refusal_REFUSAL_BROKE:
		return wire.CodeNotAllowed
	case control.Refusal_REFUSAL_NO_HEADROOM, control.Refusal_REFUSAL_DRAINING:
		return wire.CodeNoCapacity
	case control.Refusal_REFUSAL_FENCED, control.Refusal_REFUSAL_WRONG_BOOT, control.Refusal_REFUSAL_UNCONFIRMED,
		control.Refusal_REFUSAL_NOT_HERE:
		return wire.CodeStoreUnavailable
	default:
		return wire.CodeInternal
	}
}

func sentenceOf(err error) string {
	text := []byte(err.Error())
	if len(text) == 0 {
		return ""
	}
	if text[0] >= 'a' && text[0] <= 'z' {
		text[0] -= 'a' - 'A'
	}
	return string(text) + "."
}
