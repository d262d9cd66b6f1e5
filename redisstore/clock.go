package redisstore

import (
	"context"
	"sync"
	"time"
)

const (
	// clockLasts is how long a server's time counts: clocks drift by some milliseconds a minute at worst.
	clockLasts = time.Minute
	// clockEvery is the age at which a pipeline of claims asks again, for one more command.
	clockEvery = clockLasts / 2
)

// clock knows the time at one server, so that a request can say until when its caller waits. It is learned from
// replies, and costs no round trip of its own.
type clock struct {
	mu   sync.Mutex // guards the fields below
	says int64      // microseconds
	at   time.Time  // when that was heard, later than it was said; zero when nothing is known
}

// learn notes what the server just said; 0 forgets it.
func (c *clock) learn(micros int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.says, c.at = micros, time.Now()
	if micros == 0 {
		c.at = time.Time{}
	}
}

// isOld reports whether the server should be asked again.
func (c *clock) isOld() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at.IsZero() || time.Since(c.at) > clockEvery
}

// latest is the server's time at the end of ctx, early by at most the delay of the reply that it was learned from. It
// is 0 when the time is not known or ctx has no end.
func (c *clock) latest(ctx context.Context) int64 {
	end, ends := ctx.Deadline()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !ends || c.at.IsZero() || time.Since(c.at) > clockLasts {
		return 0
	}
	return c.says + end.Sub(c.at).Microseconds()
}

// now is the server's time, and false when it was never heard.
func (c *clock) now() (time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.UnixMicro(c.says).Add(time.Since(c.at)), !c.at.IsZero()
}

// Now is the time by the store's clock, the latest one in a Redis Cluster, or by our own while none is known. All
// signaling nodes share it, so epochs made of it grow whoever makes them.
func (s *Store) Now() time.Time {
	var latest time.Time
	s.masters.mu.Lock()
	defer s.masters.mu.Unlock()
	for _, m := range s.masters.byAddress {
		if now, ok := m.clock.now(); ok && latest.Before(now) {
			latest = now
		}
	}
	if latest.IsZero() {
		return time.Now()
	}
	return latest
}
