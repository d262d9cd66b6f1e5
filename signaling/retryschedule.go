package signaling

import (
	"sync"
	"time"
)

const (
	// firstRetryAfter lets whoever waits in within half a second of the store's return.
	firstRetryAfter = 200 * time.Millisecond
	// retryEvery lets 500 a second come: half a core's work of handshakes.
	retryEvery = 2 * time.Millisecond
	// lastRetryAfter is told to everybody when some 2500 wait.
	lastRetryAfter = 5 * time.Second
)

// retrySchedule spreads those who wait for the store, so that they come one after the other.
type retrySchedule struct {
	mu   sync.Mutex // guards next
	next time.Time  // the first slot that nobody has
}

// take returns the time until the next free slot.
func (r *retrySchedule) take(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := now.Add(firstRetryAfter)
	if r.next.After(at) {
		at = r.next
	}
	wait := at.Sub(now)
	if wait >= lastRetryAfter {
		return lastRetryAfter
	}
	r.next = at.Add(retryEvery)
	return wait
}
