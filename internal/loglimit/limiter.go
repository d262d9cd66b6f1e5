// Package loglimit bounds how often strangers make a process write into its log: whoever reaches a port could fill a disk
// otherwise. What is not written is counted.
package loglimit

import (
	"sync"

	"golang.org/x/time/rate"
)

// Limiter is safe for concurrent use.
type Limiter struct {
	limit *rate.Limiter

	mu       sync.Mutex
	unlogged int
}

// New allows burst lines at once.
func New(perSecond float64, burst int) *Limiter {
	return &Limiter{limit: rate.NewLimiter(rate.Limit(perSecond), burst)}
}

// Next returns whether to write, and how many lines were not.
func (l *Limiter) Next() (unlogged int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.limit.Allow() {
		l.unlogged++
		return 0, false
	}
	unlogged, l.unlogged = l.unlogged, 0
	return unlogged, true
}
