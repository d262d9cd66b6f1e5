package redisstore

import (
	"context"
	"sync"
	"time"
)

const (
	// Clocks drift by milliseconds a minute.
	clockLasts = time.Minute
	clockEvery = clockLasts / 2
)

// clock is a server's, learned from replies.
type clock struct {
	mu   sync.Mutex
	says int64 // microseconds
	at   time.Time
}

func (c *clock) learn(micros int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.says, c.at = micros, time.Now()
	if micros == 0 {
		c.at = time.Time{}
	}
}

func (c *clock) isOld() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at.IsZero() || time.Since(c.at) > clockEvery
}

// latest is the server's time at ctx's end or somewhat before; 0: unknown.
func (c *clock) latest(ctx context.Context) int64 {
	end, ends := ctx.Deadline()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !ends || c.at.IsZero() || time.Since(c.at) > clockLasts {
		return 0
	}
	return c.says + end.Sub(c.at).Microseconds()
}

func (c *clock) now() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.UnixMicro(c.says).Add(time.Since(c.at)), !c.at.IsZero()
}

// Now is the latest of all servers' clocks, or ours while none is known. Nodes share it, so epochs grow. It falls when
// the server with that clock leaves: callers go above the fences that they know.
func (s *Store) Now() time.Time {
	var latest time.Time
	for _, m := range s.masters.all() {
		if now, ok := m.clock.now(); ok && latest.Before(now) {
			latest = now
		}
	}
	if latest.IsZero() {
		return time.Now()
	}
	return latest
}
