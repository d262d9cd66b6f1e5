package signaling

import (
	"fmt"
	"time"

	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/translate"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

var (
	errNoWatch     = fault.Denied("the token does not allow watching who is online (canWatch)")
	errManyWatches = fault.New(wire.CodeTooManyMessages, "this identity or address changes whom it watches too often", "Slow down.")
)

// watching is a session's part in who is online: its own presence, and whom it watches. The session's loop owns it.
type watching struct {
	tracker *presence.Tracker
	limits  *limits.Limits
	socket  *socket
	present *presence.Held    // nil before appear, and for people whom nobody sees
	watcher *presence.Watcher // nil until the client watches
}

// The hidden, and who tests a connection, are not online and get no messages.
func unseen(who access.Session) bool { return who.Hidden || who.Check }

func (w *watching) appear(who access.Session) {
	if unseen(who) {
		return
	}
	w.present = w.tracker.Add(presence.Lease{
		User: who.Identity, Conn: who.Peer, Room: who.Room, Since: time.UnixMilli(who.Began),
	})
}

// Without a leave the lease lapses unless the client resumes.
func (w *watching) disappear(left bool) {
	if w.watcher != nil {
		_ = w.tracker.Watch(w.watcher, nil) // watching nobody is never refused
	}
	switch {
	case w.present == nil:
	case left:
		w.tracker.Remove(w.present)
	default:
		w.tracker.Drop(w.present)
	}
}

func (w *watching) watch(who access.Session, by limits.Person, m *wire.Watch) error {
	if !who.CanWatch {
		return errNoWatch
	}
	if !w.limits.Watch(by) {
		return errManyWatches
	}
	if w.watcher == nil {
		w.watcher = presence.NewWatcher(strikeName(who), func(list []presence.Status) { w.socket.send(translate.Presence(list)) })
	}
	if err := w.tracker.Watch(w.watcher, m.Users); err != nil {
		return fmt.Errorf("%w: %w", errManyWatches, err)
	}
	return nil
}
