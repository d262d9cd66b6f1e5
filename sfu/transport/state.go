package transport

import "time"

const (
	// Browsers check at least every 2.5 s.
	disconnectedAfter = 5 * time.Second
	// Consent's life (RFC 7675 section 5.1).
	failedAfter = 30 * time.Second
	// After a DTLS alert, which anybody may have sent.
	goodbyeAfter = 5 * time.Second
)

func (c *Conn) silence(now time.Time) time.Duration {
	return now.Sub(c.opened) - time.Duration(c.heard.Load())
}

func (c *Conn) alive(now time.Time) bool { return c.silence(now) < disconnectedAfter }

func (c *Conn) settle(now time.Time) {
	c.states.Lock()
	defer c.states.Unlock()
	state := c.present(now)
	if state == c.state || c.state == Failed {
		return
	}
	c.state = state
	c.cfg.Handler.StateChanged(state)
}

func (c *Conn) present(now time.Time) State {
	c.mu.Lock()
	up, failed := c.up, c.failed || c.closed
	c.mu.Unlock()
	silence, goodbye := c.silence(now), c.goodbye.Load()
	parting := goodbye != 0 && goodbye > c.heard.Load()
	switch {
	case failed || silence >= failedAfter || parting && silence >= goodbyeAfter:
		return Failed
	case !up:
		return Connecting
	case silence >= disconnectedAfter:
		return Disconnected
	}
	return Connected
}
