package redisstore

import (
	"context"
	"strconv"
	"sync"
	"time"
)

const (
	// clockLasts is for how long what a server said of its time is believed: two clocks drift apart by some
	// milliseconds a minute at worst.
	clockLasts = time.Minute
	// clockEvery is how old it gets before a pipeline of claims asks again, at the price of one more command in it.
	clockEvery = clockLasts / 2
)

// clock knows what time it is at one server, so that a request can say until when somebody waits for it. It is learned
// from answers: a server is never asked for nothing else.
type clock struct {
	mu   sync.Mutex // guards the fields below
	says int64      // microseconds
	at   time.Time  // when that was heard, later than it was said; zero when nothing is known
}

// learn notes what the server said, just now; 0 forgets it.
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

// latest is the server's time at the end of ctx, or a little before it: the way of the answer that taught us its time. It
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

// Now is the time by the store's own clock, the latest of them in a Redis Cluster, or by ours while the store has not told its own. Edges
// whose clocks differ agree in it, so that epochs that are made of it grow whoever makes them.
func (s *Store) Now() time.Time {
	if s.sole != nil {
		if now, ok := s.sole.clock.now(); ok {
			return now
		}
		return time.Now()
	}
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

// timeOf reads the two numbers of TIME as microseconds; 0 for what cannot be read.
func timeOf(seconds, micros any) int64 {
	a, _ := seconds.(string)
	b, _ := micros.(string)
	s, err := strconv.ParseInt(a, 10, 64)
	if err != nil {
		return 0
	}
	us, err := strconv.ParseInt(b, 10, 64)
	if err != nil {
		return 0
	}
	return s*1_000_000 + us
}
