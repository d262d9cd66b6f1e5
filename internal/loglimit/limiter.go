// Package loglimit bounds how often strangers make a process write into its log, because otherwise anybody who
// reaches a port could fill a disk. Lines that are not written are counted.
package loglimit

import (
	"sync"

	"golang.org/x/time/rate"
)

// Limiter bounds the lines of one kind. It is safe for concurrent use.
type Limiter struct {
	limit *rate.Limiter

	mu       sync.Mutex
	unlogged int
}

// New returns a Limiter that allows burst lines at once and perSecond lines in the long run.
func New(perSecond float64, burst int) *Limiter {
	return &Limiter{limit: rate.NewLimiter(rate.Limit(perSecond), burst)}
}

// Next reports whether the next line may be written, and how many lines before it were not.
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
