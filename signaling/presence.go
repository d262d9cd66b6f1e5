package signaling

import (
	"cmp"
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
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const (
	// users of one request
	maxAsked      = 100
	askLimitUsers = 2 * time.Second
)

var (
	errNoWatch      = errors.New("the token does not allow watching who is online (canWatch)")
	errManyWatches  = errors.New("this identity or address changes whom it watches too often")
	errInNoRoom     = fmt.Errorf("%w: this connection is in no room yet; it may watch, message, ping and leave", wire.ErrMalformed)
	errManyAsked    = fmt.Errorf("name at most %d users at once", maxAsked)
	errNoPage       = errors.New("page is none that this list gave")
	errUsersUnknown = orchestrator.ErrStoreUnavailable
)

// Users is who is online in the whole cluster.
type Users interface {
	Ask(ctx context.Context, users []string) ([]presence.Status, error)
	List(ctx context.Context, page uint64) (users []presence.Status, next uint64, err error)
	Count(ctx context.Context) (users int64, err error)
}

// connect begins a session in no room.
func (s *Server) connect(m *wire.Connect) (access.Session, error) {
	grant, err := s.parts.Keys.Verify(m.Token)
	if err == nil && grant.Identity == "" {
		err = access.ErrNoIdentity
	}
	if err == nil && grant.Check {
		err = access.ErrCheck
	}
	return access.Session{
		Key: grant.Key, Began: s.parts.Store.Now().UnixMilli(), Peer: newPeerID(), Identity: grant.Identity,
		Name:   cmp.Or(access.ShownName(grant.Name), access.ShownName(grant.Identity), nameless),
		Hidden: grant.Hidden, CanWatch: grant.CanWatch, CanMessage: grant.CanMessage,
	}, err
}

func (s *session) inNoRoom() bool { return s.who.Room == "" }

func (s *session) beginInNoRoom() {
	s.server.noRooms.add(s)
	s.appear()
	s.socket.send(&wire.Connected{Protocol: wire.Version, Identity: s.who.Identity, Watch: s.who.CanWatch, Message: s.mayMessage()})
	s.openMessages()
	s.log.Info("connection in no room begins", "identity", s.who.Identity)
}

// The hidden, and who tests a connection, are not online and get no messages.
func (s *session) unseen() bool { return s.who.Hidden || s.who.Check }

func (s *session) appear() {
	if s.unseen() {
		return
	}
	s.present = s.server.parts.Presence.Add(presence.Lease{
		User: s.who.Identity, Conn: s.who.Peer, Room: s.who.Room, Since: time.UnixMilli(s.who.Began),
	})
}

// Without a leave the lease lapses unless the client resumes.
func (s *session) disappear(left bool) {
	tracker := s.server.parts.Presence
	if s.watcher != nil {
		_ = tracker.Watch(s.watcher, nil) // watching nobody is never refused
	}
	switch {
	case s.present == nil:
	case left:
		tracker.Remove(s.present)
	default:
		tracker.Drop(s.present)
	}
}

func (s *session) watch(m *wire.Watch) error {
	if !s.who.CanWatch {
		return errNoWatch
	}
	if !s.server.limits.Watch(s.person()) {
		return errManyWatches
	}
	if s.watcher == nil {
		s.watcher = presence.NewWatcher(s.strikeName(), func(list []presence.Status) { s.socket.send(presenceMessage(list)) })
	}
	if err := s.server.parts.Presence.Watch(s.watcher, m.Users); err != nil {
		return fmt.Errorf("%w: %w", errManyWatches, err)
	}
	return nil
}

func presenceMessage(list []presence.Status) *wire.Presence {
	m := &wire.Presence{Users: make(wire.List[wire.UserPresence], 0, len(list))}
	for _, status := range list {
		m.Users = append(m.Users, wire.UserPresence{
			User: status.User, State: string(status.State), Since: unixMilli(status.Since), LastSeen: unixMilli(status.LastSeen),
		})
	}
	return m
}

// unixMilli is 0 for no time.
func unixMilli(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

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
		writeFault(w, err)
		return
	}
	writeJSON(w, http.StatusOK, answer)
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
