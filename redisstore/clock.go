package redisstore

import (
	"context"
	"sync"
	"time"
)

const (
	// clockLasts is how long a reading counts, because clocks drift by milliseconds a minute.
	clockLasts = time.Minute
	clockEvery = clockLasts / 2
)

// clock is a server's clock, which is learned from the server's replies.
type clock struct {
	mu sync.Mutex
	// says is in microseconds.
	says int64
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

// latest returns the server's time at the end of ctx, or somewhat earlier; 0 if the server's clock is unknown.
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

// Now returns the latest of all servers' clocks, or this machine's while none is known. All nodes share it, so epochs
// grow. It falls when the server with the latest clock leaves: callers choose epochs above the fences that they know.
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
