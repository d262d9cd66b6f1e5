package transport

import (
	"context"
	"sync"
	"time"
)

const tickEvery = 10 * time.Millisecond

// clock runs only while something is due.
type clock struct {
	timer *time.Timer

	mu   sync.Mutex // guards the fields below
	due  map[*Conn]time.Time
	next time.Time
	last time.Time
}

func newClock() *clock {
	c := &clock{timer: time.NewTimer(time.Hour), due: map[*Conn]time.Time{}}
	c.timer.Stop()
	return c
}

// TickAt has Tick called at that time, or up to 10 ms later. An earlier call that is due already stays.
func (c *Conn) TickAt(at time.Time) {
	k := c.transport.clock
	k.mu.Lock()
	defer k.mu.Unlock()
	if old, waits := k.due[c]; waits && !at.Before(old) {
		return
	}
	k.due[c] = at
	k.wind(at)
}

// wind needs mu.
func (k *clock) wind(at time.Time) {
	if least := k.last.Add(tickEvery); at.Before(least) {
		at = least
	}
	if k.next.IsZero() || at.Before(k.next) {
		k.next = at
		k.timer.Reset(time.Until(at))
	}
}

func (k *clock) run(ctx context.Context) {
	defer k.timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-k.timer.C:
			for _, c := range k.fallen(now) {
				c.transport.on(c, now, (*Conn).tick)
			}
		}
	}
}

func (k *clock) fallen(now time.Time) []*Conn {
	k.mu.Lock()
	defer k.mu.Unlock()
	var fallen []*Conn
	var next time.Time
	for c, at := range k.due {
		switch {
		case !at.After(now):
			fallen = append(fallen, c)
			delete(k.due, c)
		case next.IsZero() || at.Before(next):
			next = at
		}
	}
	k.last, k.next = now, time.Time{}
	if !next.IsZero() {
		k.wind(next)
	}
	return fallen
}

func (k *clock) forget(c *Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.due, c)
}
