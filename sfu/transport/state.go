package transport

import "time"

const (
	// disconnectedAfter is longer than a Wi-Fi hiccup; browsers check every 2.5 s at least.
	disconnectedAfter = 5 * time.Second
	// failedAfter is how long consent lasts without a word (RFC 7675 section 5.1).
	failedAfter = 30 * time.Second
	// goodbyeAfter is how long a client that has sent a DTLS alert may be silent. Nobody proved that the alert is the client's.
	goodbyeAfter = 5 * time.Second
)

// alive reports whether the client has been heard of late.
func (c *Conn) alive(now time.Time) bool {
	return now.UnixNano()-c.heard.Load() < int64(disconnectedAfter)
}

// settle works out the state and tells of a change.
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
	heard := c.heard.Load()
	silence := time.Duration(now.UnixNano() - heard)
	goodbye := c.goodbye.Load()
	switch {
	case failed || silence >= failedAfter || goodbye > heard && silence >= goodbyeAfter:
		return Failed
	case !up:
		return Connecting
	case silence >= disconnectedAfter:
		return Disconnected
	}
	return Connected
}
