package signaling

import (
	"sync"
	"time"
)

const (
	firstRetryAfter = 200 * time.Millisecond
	// 500 a second cost half a core for handshakes.
	retryEvery = 2 * time.Millisecond
	// Some 2500 wait by then.
	lastRetryAfter = 5 * time.Second
)

// retrySchedule spreads those who wait for the store.
type retrySchedule struct {
	mu   sync.Mutex
	next time.Time // first free slot
}

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
