package pinowner

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
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
