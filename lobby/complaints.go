package lobby

import (
	"sync"

	"golang.org/x/time/rate"
)

// Complaints bounds how often strangers make us write into the log: whoever can
// reach a port could fill a disk otherwise. What is not written is counted.
type Complaints struct {
	limit *rate.Limiter

	mu       sync.Mutex // guards unlogged
	unlogged int
}

// NewComplaints allows burst lines at once and perSecond on average.
func NewComplaints(perSecond float64, burst int) *Complaints {
	return &Complaints{limit: rate.NewLimiter(rate.Limit(perSecond), burst)}
}

// Next reports whether this complaint is written and, if so, how many before it were not.
func (c *Complaints) Next() (unlogged int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.limit.Allow() {
		c.unlogged++
		return 0, false
	}
	unlogged, c.unlogged = c.unlogged, 0
	return unlogged, true
}
