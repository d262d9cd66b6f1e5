package testkit

import (
	"context"
	"log/slog"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/panics"
)

// Recorded returns a recorder of events for a test, and a function that returns the events recorded so far.
func Recorded(t testing.TB) (recorder *events.Recorder, facts func() []events.Event) {
	store := &eventStore{}
	recorder = events.NewRecorder(store, panics.New(), slog.New(slog.DiscardHandler))
	return recorder, func() []events.Event {
		// A recorder whose time is over writes what waits, and returns.
		ended, end := context.WithCancel(t.Context())
		end()
		_ = recorder.Run(ended)
		return store.facts
	}
}

// eventStore keeps everything. Only the goroutine of the test uses it.
type eventStore struct{ facts []events.Event }

// AppendEvents implements events.Store.
func (s *eventStore) AppendEvents(_ context.Context, facts []events.Event) error {
	s.facts = append(s.facts, facts...)
	return nil
}
