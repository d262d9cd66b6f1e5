package bandwidth

import (
	"math"
	"time"
)

// The estimator follows draft-ietf-rmcat-gcc-02, but for how it sees a queue: by the smallest queueing delay of an interval, as CoDel
// (RFC 8289), not by the delay's gradient. A busy machine makes single packets late, which a gradient takes for congestion.
const (
	// interval must hold a few packets of audio.
	interval      = 250 * time.Millisecond
	leastPackets  = 5
	staleInterval = 2 * time.Second // an interval that takes longer says nothing

	// standingQueue is the delay above the path's own that no good path keeps up.
	standingQueue = 80 * time.Millisecond
	// draining is how much the smallest delay falls from the first half of an interval to the second when the queue is on its way out.
	draining = 10 * time.Millisecond
	// notOurs: a delay that stays without loss while less than this part of what passed before is sent is no queue of ours.
	notOurs = 0.7
	// unchanged: nor is one that a decrease has not moved, while at least this part is sent on: there was nothing to leave out.
	unchanged = 0.9
	// baseLife is how long, at most twice, the smallest delay counts as the path's own: clocks drift.
	baseLife = 10 * time.Second

	// The draft's 0.10 is reached now and then at 5 % of random loss.
	lossIntervals = 6 // over which loss is judged
	lossPackets   = 100
	heavyLoss     = 0.12

	// afterQueue leaves room for the queue to empty; after loss there is no queue.
	afterQueue = 0.85
	afterLoss  = 0.95
	// recovered is the part of the rate measured in the queue that is used once the queue is gone.
	recovered = 0.95
	// afterDecrease is the time in which a decrease shows: a keyframe of the lower layer must come. afterProbe: a probe's queue empties.
	afterDecrease = 500 * time.Millisecond
	afterProbe    = time.Second
	// growth is the increase a second while nearly all of the target is used.
	growth    = 0.08
	nearlyAll = 0.9

	leastTarget = 30_000 // a voice
	// mostStart: a path that carried so much is not known to be narrow.
	mostStart = 100_000_000
)

// sample is one packet that arrived. The two times are of different clocks.
type sample struct {
	sequence      uint16
	sent, arrived time.Duration
	bytes         uint32
}

// delay is the one-way delay plus the unknown difference of the clocks.
func (s sample) delay() time.Duration { return s.arrived - s.sent }

// burst is the time within which packets count as sent at once.
const burst = 5 * time.Millisecond

// never is later than any delay.
const never = time.Duration(math.MaxInt64 / 2)

// window is what arrived in one interval.
type window struct {
	first, last     sample
	smallest        time.Duration // delay
	early, later    time.Duration // smallest delay of the first half, and of the rest
	bytes           uint64        // that arrived since the first packet did
	sentBytes       uint64        // that were sent since its burst was
	packets, losses int
}

// rate is in bits per second, the slower of what was sent and what arrived: a burst that waited arrives faster than the path is.
func (w *window) rate() float64 {
	arrived, sent := w.last.arrived-w.first.arrived, w.last.sent-w.first.sent
	if arrived <= 0 || sent <= 0 {
		return 0
	}
	return min(float64(w.bytes*8)/arrived.Seconds(), float64(w.sentBytes*8)/sent.Seconds())
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

// tally is the packets of one interval, for the loss over several.
type tally struct{ packets, losses int }

// estimator turns samples into a target. It is a value without clock or lock.
type estimator struct {
	target float64 // bits per second; 0: never congested, unlimited

	now         window
	past        [lossIntervals]tally
	pastAt      int
	base, older time.Duration // smallest delay of this and of the previous life
	baseFrom    time.Duration
	baseKnown   bool

	decreasedAt time.Duration // by the samples' sending time
	before      float64       // the target before that decrease
	stood       time.Duration // the smallest delay at that decrease
	passed      float64       // what passed while the queue stood at that decrease
	carried     float64       // the same; 0: taken back up already
	probing     prober
}

// newEstimator begins at a time with a target that was found elsewhere, 0 for none. Nothing is probed at first: a connection begins with
// keyframes, and the path is as narrow as it was.
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
		e.now.add(s) // The next one begins where this one ended.
	}
}

func (e *estimator) lost(sequence uint16) {
	e.now.losses++
	e.probing.lost(sequence)
}

// follow keeps the smallest delay of the path.
func (e *estimator) follow(s sample) {
	switch {
	case !e.baseKnown:
		e.baseKnown = true
		e.base, e.older, e.baseFrom = s.delay(), s.delay(), s.arrived
	case s.arrived-e.baseFrom > baseLife:
		e.older, e.base, e.baseFrom = e.base, s.delay(), s.arrived
	default:
		e.base = min(e.base, s.delay())
	}
}

// judge acts on an interval that is full.
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

// rebase takes the present delay for the path's own.
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

// grow takes what passed without a queue for possible, and a little more while the target is used.
func (e *estimator) grow(rate, seconds float64) {
	if rate >= nearlyAll*e.target {
		e.target *= 1 + growth*seconds
	}
	e.target = max(e.target, rate)
}

// settle ends a probe that is complete.
func (e *estimator) settle(now time.Duration) {
	if rate, ended := e.probing.result(now, e.target); ended && e.target != 0 {
		e.target = max(e.target, rate)
	}
}

// probe says how much padding to send now.
func (e *estimator) probe(now time.Duration, wanted float64, urgent bool, sentBytes uint64, sequence uint16) int {
	e.settle(now)
	if e.target == 0 || wanted <= e.target {
		return 0
	}
	return e.probing.padding(now, wanted, e.target, urgent, sentBytes, sequence)
}
