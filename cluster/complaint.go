package cluster

import (
	"log/slog"
	"sync"
	"time"
)

// complainEvery is how often what was not understood is spoken of: a member of another version, or a damaged one, sends a report a
// second, and every member hears each of them several times.
const complainEvery = 10 * time.Second

// complaints keeps what other members say wrongly from filling the log.
type complaints struct {
	mu    sync.Mutex // guards the fields below
	last  time.Time
	quiet int // how many were left out since
}

// complain logs that a message was dropped, at most one every complainEvery.
func (c *Cluster) complain(what string, err error) {
	c.complaints.about(c.log, what, err)
}

func (c *complaints) about(log *slog.Logger, what string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.last.IsZero() || now.Sub(c.last) >= complainEvery {
		log.Warn(what, "err", err, "left_out", c.quiet)
		c.last, c.quiet = now, 0
		return
	}
	c.quiet++
}
