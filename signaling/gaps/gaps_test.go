package gaps

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
)

type memory struct {
	mu    sync.Mutex
	facts []events.Event // guarded by mu
}

func (m *memory) AppendEvents(_ context.Context, facts []events.Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.facts = append(m.facts, facts...)
	return nil
}

func (m *memory) all() []events.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.facts)
}

func TestOneEventForARoomAndFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &memory{}
		recorder := events.NewRecorder(kept, panics.New(), slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		ended.Go(func() { _ = recorder.Run(ctx) }) // it returns nil
		g := New("signaling-1", recorder)
		fence := pin.Fence{Epoch: 7, Nonce: 8}
		g.Report("hall", fence, 140*time.Millisecond, 2)
		<-time.After(time.Second)
		g.Report("hall", fence, 90*time.Millisecond, 2)
		g.Report("cellar", fence, time.Second, 3)
		<-time.After(time.Second)
		synctest.Wait()
		if facts := kept.all(); len(facts) != 1 {
			t.Errorf("everybody of one room is back, and somebody of another is not: %+v", facts)
		}
		<-time.After(20 * time.Second)
		g.Report("cellar", fence, 15*time.Second, 3)
		<-time.After(time.Minute)
		cancel()
		ended.Wait()
		if len(kept.facts) != 3 || kept.facts[2].Sentence() != "cellar: 1 more back at signaling-1, after 15.00 s" || kept.facts[0].Sentence() != "hall: 2 of 2 back at signaling-1, worst gap 0.14 s" ||
			kept.facts[1].Sentence() != "cellar: 1 of 3 back at signaling-1, worst gap 1.00 s" {
			t.Errorf("%+v", kept.facts)
		}
	})
}
