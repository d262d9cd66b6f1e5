package pinowner

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/people/roster"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// rosterBook counts what it is told to write.
type rosterBook struct {
	mu        sync.Mutex
	renewed   int
	rewritten int
	err       error
}

func (b *rosterBook) Renew(ring.RoomID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.renewed++
}

func (b *rosterBook) Prolong(ring.RoomID) {}

func (b *rosterBook) Rewrite(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rewritten++
	return b.err
}

func (b *rosterBook) say(err error) (renewed, rewritten int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	renewed, rewritten = b.renewed, b.rewritten
	b.renewed, b.rewritten, b.err = 0, 0, err
	return renewed, rewritten
}

// A store that lost its memory has the rosters again before the node counts as synced, and one whose pin was gone at once.
func TestRostersAreWrittenBeforeANodeIsSynced(t *testing.T) {
	cfg, book := DefaultConfig(), &rosterBook{}
	cfg.Rosters = book
	withOwner(t, cfg, func(t *testing.T, own *Owner, s *testkit.MemoryStore, _ *testkit.Rooms, _ pin.Pin) {
		after(2 * cfg.RefreshEvery)
		book.say(errors.New("the store is away again"))
		after(2 * cfg.RefreshEvery)
		if renewed, rewritten := book.say(errors.New("the store is away again")); renewed != 0 || rewritten != 0 {
			t.Errorf("while nothing is lost, %d rosters are renewed and all are rewritten %d times", renewed, rewritten)
		}
		s.Lose()
		after(checkEvery)
		if own.Synced().Has(s.Incarnation()) {
			t.Error("the node is synced, and its rosters are not written")
		}
		if renewed, rewritten := book.say(nil); renewed != 1 || rewritten == 0 {
			t.Errorf("after a loss %d rosters are renewed, and all are rewritten %d times, want one and some", renewed, rewritten)
		}
		after(cfg.RefreshEvery)
		if !own.Synced().Has(s.Incarnation()) {
			t.Error("the node is not synced, and its rosters are written")
		}
	})
}

// writes counts the rosters that a writer has written.
type writes struct {
	mu    sync.Mutex
	count int
}

func (w *writes) WriteRosters(_ context.Context, changes []roster.Change) ([]roster.Outcome, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count += len(changes)
	outcomes := make([]roster.Outcome, len(changes))
	for i := range outcomes {
		outcomes[i] = roster.Written
	}
	return outcomes, nil
}

func (w *writes) said() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := w.count
	w.count = 0
	return count
}

// A process that lacks CPU is paused again and again, and confirms every pin after each pause. Rosters that nobody changed
// are not written again then, and stay in the store all the same.
func TestAPauseWritesNoRoster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, pins, store := pinAt("a", 1, 5000, 5), testkit.NewMemoryStore(), &writes{}
		pins.Put("r", ours.Encode())
		cfg, writer := DefaultConfig(), roster.NewWriter(panics.New(), quiet)
		writer.Store, cfg.Rosters = store, writer
		own := New(pins, testkit.NewRooms(pin.Holding{Room: "r", Pin: ours}), cfg, quiet)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = own.Run(ctx) })
		running.Go(func() { _ = writer.Run(ctx) })
		defer func() { stop(); running.Wait() }()
		writer.Open("r", ours).Put(roster.Peer{ID: "p", Identity: "p"})
		after(3 * cfg.RefreshEvery)
		store.said()
		for range 10 {
			own.mu.Lock()
			own.heartbeat = own.heartbeat.Add(-2 * pauseGap)
			own.mu.Unlock()
			after(cfg.RefreshEvery)
		}
		if got := store.said(); got != 0 {
			t.Errorf("ten pauses had %d rosters written, and nobody came or left", got)
		}
		const lives = time.Hour
		after(lives)
		if got := store.said(); got == 0 || got > int(lives/cfg.ProlongEvery) {
			t.Errorf("in an hour without a change the roster was written %d times, want some, and at most once for each time that its pin is prolonged", got)
		}
	})
}

// adoptingRooms is a room that adopts a higher pin of its node some time after it is told of it, as the loop of a room does.
type adoptingRooms struct {
	mu     sync.Mutex
	held   pin.Holding
	higher pin.Pin
}

func (r *adoptingRooms) Held() []pin.Holding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return []pin.Holding{r.held}
}

func (r *adoptingRooms) Fence(_ ring.RoomID, higher pin.Pin) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.higher = higher
}

func (r *adoptingRooms) adopt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held.Pin = r.higher
}

// A node that took a room back from a claim in an empty store is not synced until the room has adopted the higher pin and
// its roster has been written under it: the store takes no roster under the former pin.
func TestANodeIsNotSyncedBeforeARoomAdoptsItsPin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, s, book := pinAt("a", 1, 5000, 5), testkit.NewMemoryStore(), &rosterBook{}
		rooms, cfg := &adoptingRooms{held: pin.Holding{Room: "r", Pin: ours}}, DefaultConfig()
		cfg.Rosters = book
		s.Put("r", ours.Encode())
		own := New(s, rooms, cfg, quiet)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = own.Run(ctx) })
		defer func() { stop(); running.Wait() }()
		after(2 * cfg.RefreshEvery)
		fresh := pinAt("a", 1, 9000, pin.NewFreshNonce())
		s.Lose()
		s.Put("r", fresh.Encode())
		after(checkEvery)
		if rooms.higher.Fence.Epoch != fresh.Fence.Epoch+1 {
			t.Fatalf("the room is told of %v, want a pin above %v", rooms.higher, fresh)
		}
		if own.Synced().Has(s.Incarnation()) {
			t.Error("the node is synced, and the room's roster cannot be written yet")
		}
		rooms.adopt()
		book.say(nil)
		after(2 * retryEvery)
		if _, rewritten := book.say(nil); rewritten == 0 || !own.Synced().Has(s.Incarnation()) {
			t.Errorf("%v after the adoption the rosters are rewritten %d times, and the node is synced in %v", 2*retryEvery, rewritten, own.Synced().All())
		}
	})
}
