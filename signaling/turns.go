package signaling

import (
	"sync"
	"time"
)

const (
	// soonestTurn lets whoever waits in within half a second of the store's return.
	soonestTurn = 200 * time.Millisecond
	// turnEvery lets 500 a second come: half a core's work of handshakes.
	turnEvery = 2 * time.Millisecond
	// latestTurn is told to everybody when some 2500 wait.
	latestTurn = 5 * time.Second
)

// retrySchedule spreads those who wait for the store, so that they come one after the other.
type turns struct {
	mu   sync.Mutex // guards next
	next time.Time  // the first slot that nobody has
}

// take returns the time until the next free slot.
func (t *turns) take(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := now.Add(soonestTurn)
	if t.next.After(at) {
		at = t.next
	}
	wait := at.Sub(now)
	if wait >= latestTurn {
		return latestTurn
	}
	t.next = at.Add(turnEvery)
	return wait
}
