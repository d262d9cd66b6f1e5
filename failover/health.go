package failover

import (
	"sync"
	"sync/atomic"
	"time"
)

// pauseAwareClock stands still while this process does: its pause is no silence of nodes.
type pauseAwareClock struct {
	elapsed atomic.Int64 // nanoseconds
	last    time.Time    // tick of the detector
}

const longestTick = 2 * detectEvery

func (c *pauseAwareClock) tick(now time.Time) {
	if !c.last.IsZero() {
		c.elapsed.Add(int64(min(now.Sub(c.last), longestTick)))
	}
	c.last = now
}

func (c *pauseAwareClock) now() time.Duration { return time.Duration(c.elapsed.Load()) }

type peerHealth struct {
	clock *pauseAwareClock

	mu            sync.Mutex
	lastHeard     time.Duration
	asked         time.Duration // first question since lastHeard
	unanswered    bool          // since lastHeard
	asking        bool
	streamBroken  bool // since lastHeard
	suspect       bool
	suspectAt     time.Duration
	suspectLogged bool
	stalled       bool // many clients receive nothing
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

// answer is the age of the first unanswered question.
func (h *peerHealth) silence() (silence, answer time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clock.now()
	if h.unanswered {
		answer = now - h.asked
	}
	return now - h.lastHeard, answer
}

// noteSuspicion is true once, logAfter its begin.
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
