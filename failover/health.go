package failover

import (
	"sync"
	"sync/atomic"
	"time"
)

// pauseAwareClock stands still while this process does not run, so that its own pause is not counted as silence of
// the nodes.
type pauseAwareClock struct {
	elapsed atomic.Int64 // nanoseconds
	// last is the time of the previous tick, and steady the clock's when the process last ran after a pause. Only the detector's loop uses them.
	last   time.Time
	steady time.Duration
}

const longestTick = 2 * detectEvery

func (c *pauseAwareClock) tick(now time.Time) {
	if !c.last.IsZero() {
		gap := now.Sub(c.last)
		c.elapsed.Add(int64(min(gap, longestTick)))
		if gap > longestTick {
			c.steady = c.now()
		}
	}
	c.last = now
}

// onTime returns for how long no tick has been late.
func (c *pauseAwareClock) onTime() time.Duration { return c.now() - c.steady }

func (c *pauseAwareClock) now() time.Duration { return time.Duration(c.elapsed.Load()) }

type peerHealth struct {
	clock *pauseAwareClock

	mu        sync.Mutex
	lastHeard time.Duration
	// asked is when the first question since lastHeard was sent.
	asked time.Duration
	// unanswered is set while a question since lastHeard has no answer.
	unanswered bool
	asking     bool
	// streamBroken is set when the stream breaks and cleared by the next sign of life.
	streamBroken  bool
	suspect       bool
	suspectAt     time.Duration
	suspectLogged bool
	// stalled is set while many of the node's clients receive nothing.
	stalled bool
}

func newPeerHealth(clock *pauseAwareClock) *peerHealth {
	return &peerHealth{clock: clock, lastHeard: clock.now()}
}

func (h *peerHealth) heard() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lastHeard, h.unanswered, h.streamBroken = h.clock.now(), false, false
}

func (h *peerHealth) ask() (done func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.unanswered {
		h.unanswered, h.asked = true, h.clock.now()
	}
	h.asking = true
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.asking = false
	}
}

func (h *peerHealth) loseStream() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streamBroken = true
}

func (h *peerHealth) unreachable(after time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.streamBroken || h.clock.now()-h.lastHeard >= after
}

func (h *peerHealth) mayAsk(after time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.asking && h.clock.now()-h.lastHeard >= after
}

// silence returns for how long the node was not heard, and for how long the first unanswered question has waited.
// answer is 0 if no question waits.
func (h *peerHealth) silence() (silence, answer time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock.now()
	if h.unanswered {
		answer = now - h.asked
	}
	return now - h.lastHeard, answer
}

// noteSuspicion remembers whether gossip suspects the node. It returns true once for each suspicion, when that has
// lasted for logAfter.
func (h *peerHealth) noteSuspicion(suspect bool, logAfter time.Duration) (log bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !suspect || !h.suspect {
		h.suspect, h.suspectAt, h.suspectLogged = suspect, h.clock.now(), false
		return false
	}
	log = !h.suspectLogged && h.clock.now()-h.suspectAt >= logAfter
	h.suspectLogged = h.suspectLogged || log
	return log
}

func (h *peerHealth) stall(many bool) (begins, ends bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	begins, ends = many && !h.stalled, !many && h.stalled
	h.stalled = many
	return begins, ends
}
