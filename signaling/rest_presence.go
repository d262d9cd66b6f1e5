package signaling

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
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const (
	// users of one request
	maxAsked      = 100
	askLimitUsers = 2 * time.Second
)

var (
	errManyAsked    = fmt.Errorf("name at most %d users at once", maxAsked)
	errNoPage       = errors.New("page is none that this list gave")
	errUsersUnknown = orchestrator.ErrStoreUnavailable
)

type userAnswer struct {
	wire.UserPresence

	Connections int           `json:"connections,omitempty"`
	Rooms       []ring.RoomID `json:"rooms,omitempty"`
}

type presenceAnswer struct {
	Users  []userAnswer `json:"users"`
	Online *int64       `json:"online,omitempty"` // of a list: the total
	Next   string       `json:"next,omitempty"`   // of a list: the next page
}

// servePresence answers about named users, or lists who is online.
func (s *Server) servePresence(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), askLimitUsers)
	defer cancel()
	var answer presenceAnswer
	var err error
	if users := r.URL.Query()["user"]; len(users) > 0 {
		answer, err = s.presenceOf(ctx, users)
	} else {
		answer, err = s.presenceList(ctx, r.URL.Query().Get("page"))
	}
	if err != nil {
		reply.Refuse(w, err)
		return
	}
	reply.JSON(w, http.StatusOK, answer)
}

// presenceOf is unknown where the store is silent.
func (s *Server) presenceOf(ctx context.Context, users []string) (presenceAnswer, error) {
	if len(users) > maxAsked {
		return presenceAnswer{}, fmt.Errorf("%w: %w", wire.ErrMalformed, errManyAsked)
	}
	found, err := s.parts.Users.Ask(ctx, users)
	if err != nil {
		s.log.Debug("users are not asked for", "error", err)
	}
	answer := presenceAnswer{Users: make([]userAnswer, 0, len(users))}
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

func (s *Server) presenceList(ctx context.Context, page string) (presenceAnswer, error) {
	at, err := strconv.ParseUint("0"+page, 10, 64)
	if err != nil {
		return presenceAnswer{}, fmt.Errorf("%w: %w", wire.ErrMalformed, errNoPage)
	}
	online, err := s.parts.Users.Count(ctx)
	if err != nil {
		return presenceAnswer{}, fmt.Errorf("%w: %w", errUsersUnknown, err)
	}
	users, next, err := s.parts.Users.List(ctx, at)
	if err != nil {
		return presenceAnswer{}, fmt.Errorf("%w: %w", errUsersUnknown, err)
	}
	answer := presenceAnswer{Users: make([]userAnswer, 0, len(users)), Online: &online}
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
		UserPresence: presenceMessage([]presence.Status{status}).Users[0], Connections: status.Connections, Rooms: status.Rooms,
	}
}
