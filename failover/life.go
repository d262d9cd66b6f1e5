package failover

import (
	"sync"
	"time"
)

// awake is a clock that stands still while this process does not run. Silence is measured by it: an
// edge that was stopped, or got no CPU, for a second must not take that second for the silence of
// the nodes whose beats wait in its sockets.
type awake struct {
	mu   sync.Mutex // guards the fields below
	ran  time.Duration
	last time.Time
}

// longestTick is the most that one tick counts, twice the time between ticks.
const longestTick = 2 * attendEvery

// tick counts the time since the last tick, as far as it shows that we ran.
func (a *awake) tick(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.last.IsZero() {
		a.ran += min(now.Sub(a.last), longestTick)
	}
	a.last = now
}

// now is how long we have been awake, as of the last tick.
func (a *awake) now() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ran
}

// life is what this edge knows by itself of one boot being alive: its beats, and its answers to
// questions. Times are of the awake clock.
type life struct {
	clock *awake

	mu      sync.Mutex    // guards the fields below
	last    time.Duration // when it last beat or answered; at first, when the watch began
	asked   time.Duration // when the first question since the last sign of life was put
	asking  bool          // one was put
	lost    bool          // its stream broke, and nothing was heard since
	waiting bool          // one is out now
	doubted time.Duration // when gossip's doubt was first seen, while it lasts
	doubt   bool
	told    bool // that the doubt is held back, in the log
	stalled bool // many clients say that nothing arrives from it
}

func newLife(clock *awake) *life { return &life{clock: clock, last: clock.now()} }

// sign notes a beat or an answer.
func (l *life) sign() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last, l.asking, l.lost = l.clock.now(), false, false
}

// ask notes that a question is put; the answer is a sign, or nothing.
func (l *life) ask() (answered func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.asking {
		l.asking, l.asked = true, l.clock.now()
	}
	l.waiting = true
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waiting = false
	}
}

// lose notes that its stream broke: nothing is heard until it beats or answers again.
func (l *life) lose() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lost = true
}

// unheard says whether there is no contact with the boot: its stream broke, or it has been silent for so long.
func (l *life) unheard(after time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost || l.clock.now()-l.last >= after
}

// quiet says whether the boot should be asked: it has been silent for so long, and no question is out.
func (l *life) quiet(after time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.waiting && l.clock.now()-l.last >= after
}

// silentFor says whether the boot has been silent for so long, whether or not it is being asked.
func (l *life) silentFor(least time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clock.now()-l.last >= least
}

// silence returns for how long nothing came, and for how long a question has had no answer.
func (l *life) silence() (beats, answer time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.now()
	if l.asking {
		answer = now - l.asked
	}
	return now - l.last, answer
}

// doubtedFor says how long gossip has doubted the boot, and whether it is time to say so in the log, once.
func (l *life) doubtedFor(doubted bool, sayAfter time.Duration) (say bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !doubted:
		l.doubt, l.told = false, false
	case !l.doubt:
		l.doubt, l.doubted = true, l.clock.now()
	case !l.told && l.clock.now()-l.doubted >= sayAfter:
		l.told = true
		return true
	}
	return false
}

// stalls notes whether many clients say that nothing arrives from the boot, and whether that is new.
func (l *life) stalls(many bool) (begins, ends bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	begins, ends = many && !l.stalled, !many && l.stalled
	l.stalled = many
	return begins, ends
}
