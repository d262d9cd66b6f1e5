package transport

import (
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

const (
	// disconnectedAfter is twice the 2.5 s in which browsers check at least once.
	disconnectedAfter = 5 * time.Second
	// failedAfter is how long consent lasts (RFC 7675 section 5.1).
	failedAfter = 30 * time.Second
	// goodbyeAfter is the silence after a DTLS alert, which anybody may have sent.
	goodbyeAfter = 5 * time.Second
)

// limits are what a connection takes from its other end.
type limits struct {
	// streams are heard, and the first SSRC beyond flood ends the connection.
	streams, flood int
	// replay is how many packets a packet may be overtaken by.
	replay               uint
	disconnected, failed time.Duration
}

func (c *Conn) limits() limits {
	if c.keyed != nil {
		return limits{streams: keyedStreams, flood: keyedStreams, replay: keyedReplay, disconnected: silentAfter, failed: deadAfter}
	}
	return limits{streams: maxStreams, flood: floodStreams, replay: replayPackets, disconnected: disconnectedAfter, failed: failedAfter}
}

func (c *Conn) heardFrom(from egress.Address, now time.Time) {
	heard := &c.heardElsewhere
	if used := c.selected.Load(); used != nil && *used == from {
		heard = &c.heardThere
	}
	heard.Store(int64(now.Sub(c.opened)))
}

func (c *Conn) since(event *atomic.Int64, now time.Time) time.Duration {
	return now.Sub(c.opened) - time.Duration(event.Load())
}

func (c *Conn) silence(now time.Time) time.Duration {
	return min(c.since(&c.heardThere, now), c.since(&c.heardElsewhere, now))
}

// parting reports whether a DTLS alert came and nothing authentic since.
func (c *Conn) parting(now time.Time) bool {
	return c.goodbye.Load() != 0 && c.since(&c.goodbye, now) < c.silence(now)
}

func (c *Conn) alive(now time.Time) bool { return c.silence(now) < c.limits().disconnected }

// look settles the state on another goroutine, because telling the handler may take as long as its room is busy.
func (c *Conn) look(now time.Time) {
	if !c.states.TryLock() {
		return // The handler is being told. A later look finds what has changed since.
	}
	_, changed := c.change(now)
	c.states.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if changed && !c.closed {
		c.running.Go(func() { c.transport.on(c, time.Now(), (*Conn).settle) })
	}
}

func (c *Conn) settle(now time.Time) {
	c.states.Lock()
	defer c.states.Unlock()
	if state, changed := c.change(now); changed {
		c.state = state
		c.cfg.Handler.StateChanged(state)
	}
}

// change needs states.
func (c *Conn) change(now time.Time) (state State, changed bool) {
	state = c.present(now)
	return state, state != c.state && c.state != Failed
}

func (c *Conn) present(now time.Time) State {
	c.mu.Lock()
	up, failed := c.up, c.failed || c.closed
	c.mu.Unlock()
	silence, limits := c.silence(now), c.limits()
	switch {
	case failed || silence >= limits.failed || silence >= goodbyeAfter && c.parting(now):
		return Failed
	case !up:
		return Connecting
	case silence >= limits.disconnected:
		return Disconnected
	}
	return Connected
}
