package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/panics"
)

// memory keeps what it is told, unless it is away or breaks.
type memory struct {
	mu     sync.Mutex
	facts  []Event // guarded by mu
	calls  int     // guarded by mu
	away   bool    // guarded by mu
	breaks string  // guarded by mu; the room that breaks it
}

func (m *memory) AppendEvents(_ context.Context, facts []Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if m.away {
		return errors.New("away")
	}
	for _, fact := range facts {
		if m.breaks != "" && string(fact.Room) == m.breaks {
			panic("broken")
		}
	}
	m.facts = append(m.facts, facts...)
	return nil
}

func (m *memory) set(change func(*memory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m)
}

func (m *memory) kept() (facts []Event, calls int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.facts, m.calls
}

// recording runs a recorder in a bubble of synctest.
func recording(t *testing.T, check func(m *memory, r *Recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{}
		r := NewRecorder(m, panics.New(), slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		ended.Go(func() { _ = r.Run(ctx) }) // it returns nil
		check(m, r)
		cancel()
		ended.Wait()
	})
}

func TestABurstIsWrittenInBatches(t *testing.T) {
	recording(t, func(m *memory, r *Recorder) {
		for i := range 1000 {
			r.Record(Event{Kind: NodeUp, About: fmt.Sprint(i)})
		}
		<-time.After(time.Second)
		facts, calls := m.kept()
		if len(facts) != 1000 || calls != 4 || facts[999].About != "999" {
			t.Errorf("%d facts in %d calls", len(facts), calls)
		}
	})
}

func TestFactsWaitForTheStore(t *testing.T) {
	recording(t, func(m *memory, r *Recorder) {
		m.set(func(m *memory) { m.away = true })
		for i := range queued + 10 {
			r.Record(Event{Kind: NodeUp, About: fmt.Sprint(i)})
		}
		<-time.After(time.Minute)
		m.set(func(m *memory) { m.away = false })
		<-time.After(time.Minute)
		facts, _ := m.kept()
		if len(facts) != queued || facts[0].About != "0" || r.Lost() != 10 {
			t.Errorf("%d facts, %d lost", len(facts), r.Lost())
		}
	})
}

func TestTheLastFactsAreWrittenAtTheEnd(t *testing.T) {
	var m *memory
	recording(t, func(of *memory, r *Recorder) {
		m = of
		r.Record(Event{Kind: NodeLeft, Node: "sfu-1"})
	})
	if facts, _ := m.kept(); len(facts) != 1 {
		t.Errorf("%d facts", len(facts))
	}
}

func TestAFactThatBreaksTheStoreIsLost(t *testing.T) {
	recording(t, func(m *memory, r *Recorder) {
		m.set(func(m *memory) { m.breaks = "hall" })
		r.Record(Event{Kind: RoomOpened, Room: "hall"})
		<-time.After(time.Minute)
		r.Record(Event{Kind: RoomOpened, Room: "cellar"})
		<-time.After(time.Minute)
		if facts, _ := m.kept(); len(facts) != 1 || facts[0].Room != "cellar" || r.Lost() != 1 {
			t.Errorf("%v, %d lost", facts, r.Lost())
		}
	})
}

func TestALimitIsToldOncePerTenMinutes(t *testing.T) {
	recording(t, func(m *memory, r *Recorder) {
		tell := func() {
			for range 1000 {
				r.Reached(Event{Node: "sfu-1", Room: "hall", About: "people"})
				r.Reached(Event{Node: "sfu-2", Room: "hall", About: "people"}) // the room has moved and is still full
				r.Reached(Event{Node: "sfu-1", Room: "cellar", About: "people"})
				r.Reached(Event{Node: "sfu-1", About: "headroom"})
				r.Reached(Event{Node: "sfu-2", About: "headroom"})
				r.Reached(Event{Node: "sfu-2", About: "rooms"})
			}
		}
		tell()
		<-time.After(9 * time.Minute)
		tell()
		<-time.After(time.Minute + writeTimeout)
		if facts, _ := m.kept(); len(facts) != 5 || facts[0].Kind != LimitReached || facts[0].SameFor() != 10*time.Minute {
			t.Errorf("within ten minutes: %+v", facts)
		}
		tell()
		<-time.After(time.Minute)
		if facts, _ := m.kept(); len(facts) != 10 || r.Lost() != 0 {
			t.Errorf("after ten minutes: %+v", facts)
		}
	})
}

func TestNoRecorderRecordsNothing(*testing.T) {
	var r *Recorder
	r.Record(Event{Kind: NodeUp})
	r.Reached(Event{})
}
