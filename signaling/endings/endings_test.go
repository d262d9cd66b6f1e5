package endings

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLeavesAreNotedNoLongerThanTheirTokensLast(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for until, want := range map[time.Duration]time.Duration{time.Hour: time.Hour + time.Minute, 100 * time.Hour: noteLife} {
		got := leaveOf(access.Session{Room: "r", Peer: "p", Until: now.Add(until).Unix()}, now)
		if got.until.Sub(now) != want || got.room != "r" || got.texts[noteEnded+"p"] != whyLeft {
			t.Errorf("a session that may be resumed for %v is noted as %+v, want for %v", until, got, want)
		}
	}
}

// notesBreak is a store whose notes break while armed.
type notesBreak struct {
	armed   atomic.Bool
	written chan ring.RoomID
}

func (b *notesBreak) Note(_ context.Context, room ring.RoomID, _ map[string]string, _ time.Duration) error {
	if b.armed.Load() {
		panic("of a test")
	}
	b.written <- room
	return nil
}

func (b *notesBreak) Notes(_ context.Context, _ ring.RoomID, names ...string) ([]string, error) {
	return make([]string, len(names)), nil
}

func (b *notesBreak) Now() time.Time { return time.Now() }

// A note that breaks the store is given up, and Run goes on.
func TestTheLoopSurvivesANoteThatBreaks(t *testing.T) {
	store, guard := &notesBreak{written: make(chan ring.RoomID, 1)}, panics.New()
	e := New(Deps{Store: store, Panics: guard, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); e.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	store.armed.Store(true)
	e.late <- note{room: "broken", texts: map[string]string{"a": "b"}}
	testkit.Eventually(t, "the panic is counted", func() bool { return guard.Count() == 1 })
	store.armed.Store(false)
	e.late <- note{room: "whole", texts: map[string]string{"a": "b"}}
	select {
	case room := <-store.written:
		if room != "whole" {
			t.Errorf("room %s is noted", room)
		}
	case <-time.After(time.Minute):
		t.Error("nothing is noted any more")
	}
}
