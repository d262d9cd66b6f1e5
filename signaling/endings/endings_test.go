package endings

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
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
		if got.until.Sub(now) != want || got.room != "r" || len(got.texts) != 1 {
			t.Errorf("a session that may be resumed for %v is noted as %+v, want for %v", until, got, want)
		}
	}
}

// notebook is a store that never forgets.
type notebook map[string]string

func (b notebook) Note(_ context.Context, _ ring.RoomID, notes map[string]string, _ time.Duration) error {
	maps.Copy(b, notes)
	return nil
}

func (b notebook) Notes(_ context.Context, _ ring.RoomID, names ...string) ([]string, error) {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = b[name]
	}
	return texts, nil
}

func (b notebook) Now() time.Time { return time.Now() }

// However often somebody leaves, the store keeps a bounded number of notes, and the latest leaves count.
func TestLeavesOfAnIdentityAreBounded(t *testing.T) {
	const leaves = 1000
	store := notebook{}
	e := New(Deps{Store: store, Panics: panics.New(), Log: slog.New(slog.DiscardHandler)})
	session := func(i int) access.Session {
		return access.Session{Room: "r", Identity: "ada", Peer: fmt.Sprintf("p-%d", i), Until: time.Now().Add(time.Hour).Unix()}
	}
	for i := range leaves {
		e.Left(t.Context(), session(i))
		if err := e.Ended(t.Context(), session(i)); !errors.Is(err, ErrLeft) {
			t.Fatalf("session %d that just left: %v", i, err)
		}
		if err := e.Ended(t.Context(), session(leaves+i)); err != nil {
			t.Fatalf("a session that never left: %v", err)
		}
	}
	if len(store) > leaveSlots {
		t.Errorf("%d notes", len(store))
	}
	other := session(leaves - 1)
	if other.Identity = "alan"; e.Ended(t.Context(), other) != nil {
		t.Error("another identity's leave counts")
	}
}

// An older node's note of a leave counts.
func TestALeaveNotedByAnOlderNode(t *testing.T) {
	e := New(Deps{Store: notebook{noteEnded + "p": whyLeft}, Panics: panics.New(), Log: slog.New(slog.DiscardHandler)})
	if err := e.Ended(t.Context(), access.Session{Room: "r", Identity: "ada", Peer: "p"}); !errors.Is(err, ErrLeft) {
		t.Error(err)
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
