package bandwidth

import (
	"math"
	"time"
)

// The constants follow draft-ietf-rmcat-gcc-02, with one difference: a queue is the smallest queueing delay of an
// interval (RFC 8289).
const (
	interval     = 250 * time.Millisecond
	leastPackets = 5
	// staleInterval is the longest interval that says something about the path.
	staleInterval = 2 * time.Second

	// standingQueue is the delay above the path's own delay that means a queue.
	standingQueue = 80 * time.Millisecond
	// draining is how much the delay falls when a queue drains.
	draining = 10 * time.Millisecond
	// A lasting delay without loss is somebody else's queue in two cases: less than notOurs of what passed before the queue still passes,
	// or a decrease of our rate left more than unchanged of the delay.
	notOurs   = 0.7
	unchanged = 0.9
	// baseLife is how long the smallest delay counts as the path's own. It is bounded, because clocks drift.
	baseLife = 10 * time.Second

	// The loss of several intervals is summed up, because 5 % of random loss may reach the draft's 0.10 in one.
	lossIntervals = 6
	lossPackets   = 100
	heavyLoss     = 0.12

	afterQueue    = 0.85
	afterLoss     = 0.95
	recovered     = 0.95
	afterDecrease = 500 * time.Millisecond
	afterProbe    = time.Second
	growth        = 0.08
	nearlyAll     = 0.9

	leastTarget = 30_000
	mostStart   = 100_000_000
)

// sample has two times, which are of two different clocks.
type sample struct {
	sequence      uint16
	sent, arrived time.Duration
	bytes         uint32
}

func (s sample) delay() time.Duration { return s.arrived - s.sent }

const burst = 5 * time.Millisecond

const never = time.Duration(math.MaxInt64 / 2)

type window struct {
	first, last  sample
	smallest     time.Duration
	early, later time.Duration
	// bytes are those after the first packet arrived.
	bytes uint64
	// sentBytes are those after the burst of the first packet was sent.
	sentBytes       uint64
	packets, losses int
}

// rate is in bits per second. Packets that a queue held arrive faster than the path is: what was sent bounds it, if sending took longer.
func (w *window) rate() float64 {
	arrived, sent := w.last.arrived-w.first.arrived, w.last.sent-w.first.sent
	if arrived <= 0 {
		return 0
	}
	passed := float64(w.bytes*8) / arrived.Seconds()
	if sent < arrived {
		return passed
	}
	return min(passed, float64(w.sentBytes*8)/sent.Seconds())
}

func (w *window) add(s sample) {
	if w.packets == 0 {
		w.first, w.last = s, s
		w.smallest, w.early, w.later = s.delay(), s.delay(), never
	} else {
		w.bytes += uint64(s.bytes)
		if s.sent-w.first.sent > burst {
			w.sentBytes += uint64(s.bytes)
		}
		w.smallest = min(w.smallest, s.delay())
		if s.arrived-w.first.arrived < interval/2 {
			w.early = min(w.early, s.delay())
		} else {
			w.later = min(w.later, s.delay())
		}
		if s.arrived > w.last.arrived {
			w.last = s
		}
	}
	w.packets++
}

type tally struct{ packets, losses int }

// estimator has no clock and no lock. Its caller gives it the time.
type estimator struct {
	// target is in bits per second; 0 before the path was congested for the first time, when nothing is limited.
	target float64

	now    window
	past   [lossIntervals]tally
	pastAt int
	// base and older are the smallest delays of this and of the last baseLife.
	base, older time.Duration
	baseFrom    time.Duration
	baseKnown   bool

	// decreasedAt is by the clock of sending.
	decreasedAt time.Duration
	before      float64
	stood       time.Duration
	// passed is the rate at the last decrease because of a queue.
	passed float64
	// carried is the same rate until the target has regained it, then 0.
	carried float64
	probing prober
}

// newEstimator begins with a target that another node has measured, or with 0. It does not probe at first, because a
// connection begins with keyframes.
func newEstimator(target uint64, now time.Duration) estimator {
	e := estimator{probing: newProber(), decreasedAt: now - afterDecrease}
	e.probing.ended = now - afterProbe
	if target > 0 && target < mostStart {
		e.target = max(float64(target), leastTarget)
		e.probing.putOff(now)
	}
	return e
}

func (e *estimator) received(s sample) {
	e.follow(s)
	e.probing.received(s)
	if e.now.packets > 0 && s.arrived-e.now.first.arrived > staleInterval {
		e.now = window{}
	}
	e.now.add(s)
	if e.now.packets >= leastPackets && e.now.last.arrived-e.now.first.arrived >= interval {
		e.judge()
		e.now = window{}
		e.now.add(s)
	}
}

func (e *estimator) lost(sequence uint16) {
	e.now.losses++
	e.probing.lost(sequence)
}

func (e *estimator) follow(s sample) {
	switch age := s.arrived - e.baseFrom; {
	// After a silence both bases are out of date.
	case !e.baseKnown, age > 2*baseLife:
		e.baseKnown = true
		e.base, e.older, e.baseFrom = s.delay(), s.delay(), s.arrived
	case age > baseLife:
		e.older, e.base, e.baseFrom = e.base, s.delay(), s.arrived
	default:
		e.base = min(e.base, s.delay())
	}
}

func (e *estimator) judge() {
	w := &e.now
	e.past[e.pastAt] = tally{packets: w.packets, losses: w.losses}
	e.pastAt = (e.pastAt + 1) % lossIntervals
	rate := w.rate()
	queue := w.smallest - min(e.base, e.older)
	stands := queue > standingQueue && w.early-w.later < draining
	loss := e.loss()
	steady := w.losses == 0 && (w.later-w.early).Abs() < draining
	held := e.target != 0 && w.first.sent < max(e.decreasedAt+afterDecrease, e.probing.ended+afterProbe)
	switch {
	case stands && !held && steady && rate < notOurs*e.passed:
		e.rebase(w)
	case stands && !held && steady && e.target != 0 && rate >= unchanged*e.passed && (w.smallest-e.stood).Abs() < draining:
		e.rebase(w)
		e.target = e.before
	case stands && !held:
		e.decrease(afterQueue*rate, w)
		e.passed, e.carried, e.stood = rate, rate, w.smallest
	case loss > heavyLoss && !held:
		e.decrease(afterLoss*rate, w)
		e.carried = 0
	case e.target != 0 && queue <= standingQueue && loss <= heavyLoss/2:
		if !held {
			e.target = max(e.target, recovered*e.carried)
			e.carried = 0
		}
		e.grow(rate, (w.last.arrived - w.first.arrived).Seconds())
	}
}

func (e *estimator) rebase(w *window) {
	e.base, e.older, e.baseFrom = w.smallest, w.smallest, w.last.arrived
}

func (e *estimator) loss() float64 {
	var sum tally
	for _, t := range e.past {
		sum.packets += t.packets
		sum.losses += t.losses
	}
	if sum.packets+sum.losses < lossPackets {
		return 0
	}
	return float64(sum.losses) / float64(sum.packets+sum.losses)
}

func (e *estimator) decrease(to float64, w *window) {
	if e.target != 0 {
		to = min(to, e.target)
	}
	e.before, e.target = e.target, max(to, leastTarget)
	e.decreasedAt = w.last.sent
	e.past = [lossIntervals]tally{}
	e.probing.putOff(w.last.sent)
}

func (e *estimator) grow(rate, seconds float64) {
	if rate >= nearlyAll*e.target {
		e.target *= 1 + growth*seconds
	}
	e.target = max(e.target, rate)
}

func (e *estimator) settle(now time.Duration) {
	if rate, ended := e.probing.result(now, e.target); ended && e.target != 0 {
		e.target = max(e.target, rate)
	}
}

func (e *estimator) probe(now time.Duration, wanted float64, urgent bool, sentBytes uint64, sequence uint16) int {
	e.settle(now)
	if e.target == 0 || wanted <= e.target {
		return 0
	}
	return e.probing.padding(now, wanted, e.target, urgent, sentBytes, sequence)
}
