package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/metrics"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/ring"
)

const generous = 30 * time.Second

// memory is a store with facts of rooms.
type memory struct {
	mu     sync.Mutex
	facts  map[ring.RoomID][]Fact
	sent   map[string]int
	holder string
}

func newMemory() *memory {
	return &memory{facts: map[ring.RoomID][]Fact{}, sent: map[string]int{}}
}

func (m *memory) queue(room ring.RoomID, at time.Time, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for range n {
		position := len(m.facts[room]) + 1
		m.facts[room] = append(m.facts[room], Fact{Position: strconv.Itoa(position), Kind: ParticipantJoined, At: at, Room: room, Peer: Peer{ID: strconv.Itoa(position)}})
	}
}

func (m *memory) Lead(_ context.Context, sender string, life time.Duration) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if life == 0 && m.holder == sender {
		m.holder = ""
	}
	if life > 0 && m.holder == "" {
		m.holder = sender
	}
	return m.holder == sender, nil
}

func (m *memory) Marked(context.Context, int64) (rooms []ring.RoomID, last int64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for room := range m.facts {
		rooms = append(rooms, room)
	}
	return rooms, 0, nil
}

func (m *memory) Look(context.Context, uint64, int) ([]ring.RoomID, uint64, error) {
	return nil, 0, nil
}

func (m *memory) Waiting(_ context.Context, room ring.RoomID, receiver string, most int) ([]Fact, int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	facts := m.facts[room][m.sent[string(room)+receiver]:]
	return slices.Clone(facts[:min(most, len(facts))]), 0, nil
}

func (m *memory) Sent(_ context.Context, room ring.RoomID, position, receiver string, _ []string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, err := strconv.Atoi(position)
	m.sent[string(room)+receiver] = max(n, m.sent[string(room)+receiver])
	return err
}

// noted is how many facts of a room are noted as sent, to the one receiver.
func (m *memory) noted(room ring.RoomID) (facts int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for to, n := range m.sent {
		if strings.HasPrefix(to, string(room)) {
			facts += n
		}
	}
	return facts
}

func (m *memory) AppendEvents(context.Context, []events.Event) error { return nil }

type unsigned struct{}

func (unsigned) SignBody(string, []byte, time.Duration) (string, error) { return "signed", nil }

// receiver keeps what it has accepted, room by room.
type receiver struct {
	*httptest.Server

	mu     sync.Mutex
	refuse func(room, peer string) int
	heard  map[string][]string
	asked  int
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{heard: map[string][]string{}}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		var m message
		body, _ := io.ReadAll(request.Body)
		if err := json.Unmarshal(body, &m); err != nil || request.Header.Get("Authorization") != "signed" || request.Header.Get("Content-Type") != ContentType {
			t.Errorf("%s: %v, %v", body, err, request.Header)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asked++
		if r.refuse != nil {
			if status := r.refuse(m.Room.Name, m.Participant.SID); status != 0 {
				w.WriteHeader(status)
				return
			}
		}
		r.heard[m.Room.Name] = append(r.heard[m.Room.Name], m.Participant.SID)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) set(refuse func(room, peer string) int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = refuse
}

func (r *receiver) of(room string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.heard[room])
}

func quick(receivers ...string) Config {
	cfg := DefaultConfig()
	cfg.Receivers, cfg.Poll, cfg.Lease, cfg.FirstRetry, cfg.LastRetry = receivers, 5*time.Millisecond, 300*time.Millisecond, 5*time.Millisecond, 20*time.Millisecond
	return cfg
}

// start runs a sender until stop is called.
func start(t *testing.T, cfg Config, store Store) (s *Sender, stop func()) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	s = NewSender(cfg, "signaling-1", store, unsigned{}, nil, panics.New(), slog.New(slog.DiscardHandler))
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Run(ctx) }()
	stop = func() { end(); <-done }
	t.Cleanup(stop)
	return s, stop
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	limit, ticks := time.After(generous), time.NewTicker(2*time.Millisecond)
	defer ticks.Stop()
	for !holds() {
		select {
		case <-ticks.C:
		case <-limit:
			t.Fatalf("%s: not within %v", what, generous)
		}
	}
}

func ordered(n int) (sids []string) {
	for i := range n {
		sids = append(sids, fmt.Sprintf("PA_%d", i+1))
	}
	return sids
}

// firsts leaves out what came before: a sender that ended may have had no time to note what it had delivered.
func firsts(all []string) (kept []string) {
	for _, one := range all {
		if !slices.Contains(kept, one) {
			kept = append(kept, one)
		}
	}
	return kept
}

// A receiver that is down gets everything later, in order, while another one has it at once. The next sender continues.
func TestNothingIsLostAndOrderIsKept(t *testing.T) {
	store, down, up := newMemory(), newReceiver(t), newReceiver(t)
	for i := range 5 {
		store.queue(ring.RoomID(fmt.Sprint("room-", i)), time.Now(), 250)
	}
	failures := 0
	down.set(func(string, string) int { failures++; return http.StatusBadGateway })
	s, stop := start(t, quick(down.URL, up.URL), store)
	until(t, "the receiver that is up has everything", func() bool { return len(up.of("room-4")) == 250 && len(up.of("room-0")) == 250 })
	until(t, "the receiver that is down was asked again", func() bool { return s.Counters().Failed.Load() > 5 })
	stop()
	if len(down.of("room-0")) > 0 {
		t.Error("what was refused counts as heard")
	}
	down.set(nil)
	_, stop = start(t, quick(down.URL, up.URL), store)
	for i := range 5 {
		room := fmt.Sprint("room-", i)
		until(t, "the receiver that is up again has everything", func() bool { return len(down.of(room)) >= 250 })
	}
	stop()
	for i := range 5 {
		for _, r := range []*receiver{down, up} {
			if room := fmt.Sprint("room-", i); !slices.Equal(firsts(r.of(room)), ordered(250)) {
				t.Errorf("%s: %v", room, r.of(room))
			}
		}
	}
	if failures == 0 {
		t.Error("the receiver was never down")
	}
}

// What is refused for an hour is given up and counted; the rest of the room follows.
func TestGivenUp(t *testing.T) {
	store, r := newMemory(), newReceiver(t)
	store.queue("hall", time.Now().Add(-2*time.Hour), 3)
	store.queue("hall", time.Now(), 1)
	r.set(func(_, peer string) int {
		if peer == "PA_2" {
			return http.StatusInternalServerError
		}
		return 0
	})
	s, _ := start(t, quick(r.URL), store)
	until(t, "the others are heard", func() bool { return slices.Equal(r.of("hall"), []string{"PA_1", "PA_3", "PA_4"}) })
	until(t, "one is counted", func() bool { return s.Counters().GivenUp.Load() == 1 })
	if page := scraped(s); !strings.Contains(page, `holdfast_webhooks_total{result="given_up"} 1`) || !strings.Contains(page, `holdfast_webhooks_total{result="failed"} 1`) {
		t.Errorf("Prometheus reads\n%s", page)
	}
}

// A young fact is not given up, and nothing overtakes it in its room; other rooms go on.
func TestARefusedFactHoldsItsRoomOnly(t *testing.T) {
	store, r := newMemory(), newReceiver(t)
	store.queue("hall", time.Now(), 3)
	store.queue("cellar", time.Now(), 3)
	r.set(func(room, peer string) int {
		if room == "hall" && peer == "PA_2" {
			return http.StatusNotFound
		}
		return 0
	})
	s, _ := start(t, quick(r.URL), store)
	until(t, "the other room is told", func() bool { return slices.Equal(r.of("cellar"), ordered(3)) })
	until(t, "the fact is tried again", func() bool { return s.Counters().Failed.Load() > 3 })
	if page := scraped(s); !strings.Contains(page, `holdfast_webhooks_total{result="sent"} 4`) || !strings.Contains(page, "holdfast_webhooks_waiting 2") {
		t.Errorf("while two facts wait, Prometheus reads\n%s", page)
	}
	if got := r.of("hall"); !slices.Equal(got, ordered(1)) {
		t.Errorf("hall: %v", got)
	}
	r.set(nil)
	until(t, "the room goes on", func() bool { return slices.Equal(r.of("hall"), ordered(3)) })
	until(t, "nothing waits", func() bool { return strings.Contains(scraped(s), "holdfast_webhooks_waiting 0") })
}

// scraped is what Prometheus reads of a sender.
func scraped(s *Sender) string {
	r := metrics.New("signaling", "signaling-1", panics.New(), slog.New(slog.DiscardHandler))
	s.Measure(r)
	answer := httptest.NewRecorder()
	r.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return answer.Body.String()
}

// Of two senders one sends, and the other goes on when it ends.
func TestOneSender(t *testing.T) {
	store, r := newMemory(), newReceiver(t)
	first, stop := start(t, quick(r.URL), store)
	store.queue("hall", time.Now(), 1)
	until(t, "the first sends", func() bool { return len(r.of("hall")) == 1 })
	second, _ := start(t, quick(r.URL), store)
	store.queue("hall", time.Now(), 50)
	until(t, "the first sends again", func() bool { return len(r.of("hall")) == 51 })
	if second.Counters().Sent.Load() != 0 {
		t.Error("both send")
	}
	until(t, "the first has noted what it sent", func() bool { return store.noted("hall") == 51 })
	stop()
	store.queue("hall", time.Now(), 1)
	until(t, "the second sends", func() bool { return len(r.of("hall")) == 52 && second.Counters().Sent.Load() == 1 })
	if first.Counters().Sent.Load() != 51 {
		t.Errorf("the first sent %d", first.Counters().Sent.Load())
	}
}

// No error names more of a receiver than its host.
func TestErrorsHideTheURL(t *testing.T) {
	s := NewSender(quick("http://u:secret@127.0.0.1:1/secret?secret"), "n", newMemory(), unsigned{}, nil, panics.New(), slog.New(slog.DiscardHandler))
	err := s.post(t.Context(), s.lines[0].receiver, &Fact{Kind: RoomStarted})
	if err == nil || errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "secret") || strings.Contains(shown(s.lines[0].receiver), "secret") {
		t.Errorf("%v", err)
	}
}
