package signaling

import (
	"sync"
	"time"
)

// When those whom this node refuses because of the store are told to come again.
const (
	// soonestTurn: whoever waits is in within half a second of the store's return, and a question that a dead store
	// refuses at once costs little.
	soonestTurn = 200 * time.Millisecond
	// turnEvery lets 500 a second come, which is half a core's work of handshakes.
	turnEvery = 2 * time.Millisecond
	// latestTurn is told to everybody when some 2500 wait: more than 500 a second come then, each every 5 s.
	latestTurn = 5 * time.Second
)

// turns spreads those who wait for the store, so that they come one after the other, however many they are and
// however they were refused: all at once when it died.
type turns struct {
	mu   sync.Mutex // guards next
	next time.Time  // the first turn that nobody has
}

// take gives a turn, as the time from now until then.
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
