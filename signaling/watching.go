package signaling

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

var (
	errNoWatch     = errors.New("the token does not allow watching who is online (canWatch)")
	errManyWatches = errors.New("this identity or address changes whom it watches too often")
)

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
