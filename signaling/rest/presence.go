package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/translate"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const (
	// maxAsked bounds the users of one request.
	maxAsked      = 100
	askLimitUsers = 2 * time.Second
)

// Why a question about users has no answer.
var (
	ErrManyAsked    = fmt.Errorf("name at most %d users at once", maxAsked)
	ErrNoPage       = errors.New("page is none that this list gave")
	ErrUsersUnknown = orchestrator.ErrStoreUnavailable
)

type userAnswer struct {
	wire.UserPresence

	Connections int           `json:"connections,omitempty"`
	Rooms       []ring.RoomID `json:"rooms,omitempty"`
}

// PresenceAnswer says who is online.
type PresenceAnswer struct {
	Users []userAnswer `json:"users"`
	// Online is the total of a list.
	Online *int64 `json:"online,omitempty"`
	// Next is the next page of a list.
	Next string `json:"next,omitempty"`
}

// servePresence answers about named users, or lists who is online.
func (a *API) servePresence(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), askLimitUsers)
	defer cancel()
	var answer PresenceAnswer
	var err error
	if users := r.URL.Query()["user"]; len(users) > 0 {
		answer, err = a.presenceOf(ctx, users)
	} else {
		answer, err = a.presenceList(ctx, r.URL.Query().Get("page"))
	}
	if err != nil {
		reply.Refuse(w, err)
		return
	}
	reply.JSON(w, http.StatusOK, answer)
}

// presenceOf returns "unknown" for users about whom the store does not answer.
func (a *API) presenceOf(ctx context.Context, users []string) (PresenceAnswer, error) {
	if len(users) > maxAsked {
		return PresenceAnswer{}, fmt.Errorf("%w: %w", wire.ErrMalformed, ErrManyAsked)
	}
	users = slices.Clone(users)
	for i, user := range users {
		users[i] = access.Identity(user)
	}
	found, err := a.deps.Users.Ask(ctx, users)
	if err != nil {
		a.deps.Log.Debug("users are not asked for", "error", err)
	}
	answer := PresenceAnswer{Users: make([]userAnswer, 0, len(users))}
	for _, user := range users {
		at := slices.IndexFunc(found, func(status presence.Status) bool { return status.User == user })
		status := presence.Status{User: user, State: presence.Unknown}
		if at >= 0 {
			status = found[at]
		}
		answer.Users = append(answer.Users, answerOf(status))
	}
	return answer, nil
}

func (a *API) presenceList(ctx context.Context, page string) (PresenceAnswer, error) {
	at, err := strconv.ParseUint("0"+page, 10, 64)
	if err != nil {
		return PresenceAnswer{}, fmt.Errorf("%w: %w", wire.ErrMalformed, ErrNoPage)
	}
	online, err := a.deps.Users.Count(ctx)
	if err != nil {
		return PresenceAnswer{}, fmt.Errorf("%w: %w", ErrUsersUnknown, err)
	}
	users, next, err := a.deps.Users.List(ctx, at)
	if err != nil {
		return PresenceAnswer{}, fmt.Errorf("%w: %w", ErrUsersUnknown, err)
	}
	answer := PresenceAnswer{Users: make([]userAnswer, 0, len(users)), Online: &online}
	for _, status := range users {
		answer.Users = append(answer.Users, answerOf(status))
	}
	if next != 0 {
		answer.Next = strconv.FormatUint(next, 10)
	}
	return answer, nil
}

func answerOf(status presence.Status) userAnswer {
	return userAnswer{
		UserPresence: translate.Presence([]presence.Status{status}).Users[0], Connections: status.Connections, Rooms: status.Rooms,
	}
}
