package bandwidth

import (
	"math"
	"time"
)

// The estimator follows draft-ietf-rmcat-gcc-02, except that it detects a queue by the smallest queueing delay of an interval (RFC 8289).
const (
	interval     = 250 * time.Millisecond
	leastPackets = 5
	// An interval that lasts longer than staleInterval is discarded.
	staleInterval = 2 * time.Second

	// A queue stands when the smallest delay of an interval exceeds the path's base delay by more than standingQueue.
	standingQueue = 80 * time.Millisecond
	// A queue drains when the smallest delay of the second half of an interval is lower by draining.
	draining = 10 * time.Millisecond
	// If the delay lasts without loss while the rate is below notOurs of the rate at the last queue, our packets do not cause the delay.
	// The base delay is then raised.
	notOurs = 0.7
	// If a decrease left the delay as it was and at least unchanged of the rate still passes, our packets did not cause the delay.
	// The decrease is then undone.
	unchanged = 0.9
	// The base delay is the smallest delay of the last one to two baseLife. Older delays are dropped, because the clocks drift.
	baseLife = 10 * time.Second

	// The draft's limit is 0.10. A random loss of 5 % may reach that limit by chance, so heavyLoss is higher.
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

// sample is one acknowledged packet. sent is on the node's clock and arrived on the receiver's, so only differences of delay mean anything.
type sample struct {
	sequence      uint16
	sent, arrived time.Duration
	bytes         uint32
}

func (s sample) delay() time.Duration { return s.arrived - s.sent }

const burst = 5 * time.Millisecond

const never = time.Duration(math.MaxInt64 / 2)

type window struct {
	first, last     sample
	smallest        time.Duration
	early, later    time.Duration
	bytes           uint64 // after the first packet arrived
	sentBytes       uint64 // after its burst was sent
	packets, losses int
}

// rate returns the received rate in bits per second, 0 if it cannot be measured. Packets that a queue releases may arrive faster than the
// path carries, so the sending rate bounds the result if sending took longer than arriving.
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

// estimator computes the target of one path. It is not safe for concurrent use, and its caller passes the time.
type estimator struct {
	// target is in bits per second. It is 0, which means unlimited, until the path has been congested once.
	target float64

	now    window
	past   [lossIntervals]tally
	pastAt int
	// base and older are the smallest delays of the present and of the previous baseLife.
	base, older time.Duration
	baseFrom    time.Duration
	baseKnown   bool

	// decreasedAt is the sending time of the last packet before the last decrease, and before is the target before that decrease.
	decreasedAt time.Duration
	before      float64
	// stood is the smallest delay, and passed the received rate, when a standing queue last caused a decrease.
	stood  time.Duration
	passed float64
	// carried is the rate to which the target returns once the queue has drained; 0 after the return and after a decrease for loss.
	carried float64
	probing prober
}

// newEstimator begins with a target that was measured earlier, in bits per second; 0 means none. The first probe waits, because a
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
	case !e.baseKnown, age > 2*baseLife:
		// After a silence of two baseLife, both delays are out of date.
		e.baseKnown = true
		e.base, e.older, e.baseFrom = s.delay(), s.delay(), s.arrived
	case age > baseLife:
		e.older, e.base, e.baseFrom = e.base, s.delay(), s.arrived
	default:
		e.base = min(e.base, s.delay())
	}
}

// judge ends an interval and changes the target by what the interval shows: a standing queue or heavy loss lowers the target, and an interval
// without either raises the target. For a while after a decrease or a probe no interval lowers it.
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
