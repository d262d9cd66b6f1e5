package forward

import (
	"cmp"
	"slices"
	"time"
)

const (
	// raiseMargin is by how much the budget must exceed what a step up costs: rates
	// vary, and a step that is taken back costs two keyframes.
	raiseMargin = 1.15
	// returnMargin is the same for a picture that was paused: any is better than none.
	returnMargin = 1.05
	// raiseAfter is how long it must do so before the step is taken. A step down is
	// taken at once.
	raiseAfter = time.Second
	// returnAfter is the same for a picture that was paused: any is better than none.
	returnAfter = 300 * time.Millisecond
)

// demand is one video slot of a subscriber: what it could show of its source.
type demand struct {
	slot   *Slot
	rank   int // in the page's order
	screen bool
	layers []layerChoice // lowest first
	top    int           // index of what the page wants
	held   int           // index of what the slot aims at now, -1: nothing or something else
	chosen int           // -1: paused

	cut        bool // the path does not carry what the slot aims at now
	restrained bool // the node's level is below what was chosen
}

// cost is what the step to a rung adds.
func (d *demand) cost(rung int) uint64 {
	bits := d.layers[rung].bits
	if rung > 0 {
		bits -= min(bits, d.layers[rung-1].bits)
	}
	return bits
}

// apportion chooses the layers that fit the budget after sound, which is never
// cut, and returns what everything would cost if that is more than is sent, else 0.
func apportion(demands []demand, budget, audio uint64, now time.Time) (short uint64) {
	allocate(demands, budget-min(budget, audio))
	all, limited := audio, false
	for i := range demands {
		d := &demands[i]
		limited = limited || d.chosen < d.top
		for rung := range d.top + 1 {
			all += d.cost(rung)
		}
		d.hesitate(now)
	}
	if !limited {
		return 0
	}
	return uint64(float64(all) * raiseMargin)
}

// hesitate takes back a step up that has not fitted for long enough yet.
func (d *demand) hesitate(now time.Time) {
	s := d.slot
	switch {
	case d.chosen <= d.held:
		s.raised = time.Time{}
	case d.held < 0 && !s.paused:
		s.raised = time.Time{} // It has only just come: there is nothing to hesitate about.
	case s.raised.IsZero():
		s.raised = now
		d.chosen = d.held
	case now.Sub(s.raised) < patienceOf(d.held):
		d.chosen = d.held
	default:
		s.raised = time.Time{}
	}
}

func patienceOf(held int) time.Duration {
	if held < 0 {
		return returnAfter
	}
	return raiseAfter
}

// allocate sets what each demand may show. The budget goes into steps, one after
// the other: first everybody's lowest layer in the page's order, then screens up to
// what is wanted of them, then each next layer of all cameras. A step that does not
// fit is passed over, with what builds on it. So more of the budget never takes anything
// from the more important for the less important, and what is shown is kept unless something
// more important needs its place.
func allocate(demands []demand, budget uint64) {
	slices.SortStableFunc(demands, func(a, b demand) int { return cmp.Compare(a.rank, b.rank) })
	highest := 0
	for i := range demands {
		demands[i].chosen = -1
		highest = max(highest, demands[i].top)
	}
	step := func(d *demand, rung int) {
		if d.chosen != rung-1 || rung > d.top {
			return
		}
		needed := d.cost(rung)
		if rung > d.held {
			needed = uint64(float64(needed) * margin(rung))
		}
		if needed <= budget {
			budget -= d.cost(rung)
			d.chosen = rung
		}
	}
	for i := range demands {
		step(&demands[i], 0)
	}
	for i := range demands {
		for rung := 1; demands[i].screen && rung <= demands[i].top; rung++ {
			step(&demands[i], rung)
		}
	}
	for rung := 1; rung <= highest; rung++ {
		for i := range demands {
			if !demands[i].screen {
				step(&demands[i], rung)
			}
		}
	}
}

func margin(rung int) float64 {
	if rung == 0 {
		return returnMargin
	}
	return raiseMargin
}

// assumedBits are those of a second by the square of the height: 130 kbit/s at 180 lines, 2 Mbit/s at 720.
const assumedBits = 4

// rateMeter measures what a layer sends.
type rateMeter struct {
	bytes uint64
	bits  float64 // a second, smoothed over about a second
	begun bool    // the next measurement covers a whole interval
	known bool
}

func (m *rateMeter) add(packetBytes int) {
	// What SRTP, UDP and IP add; the publisher's header stands for ours.
	const added = wireOverhead - 20
	m.bytes += uint64(packetBytes + added)
}

func (m *rateMeter) measure(elapsed time.Duration) {
	const weight = 0.25
	if elapsed <= 0 || elapsed > 10*lookInterval {
		m.bytes = 0 // The room has slept.
		return
	}
	bits := float64(m.bytes*8) / elapsed.Seconds()
	switch {
	case m.known:
		m.bits += weight * (bits - m.bits)
	case m.begun:
		m.known, m.bits = true, bits
	default:
		m.begun = m.bytes > 0
	}
	m.bytes = 0
}

// bits is what the layer sends in a second, an estimate before it was measured.
func (l *Layer) bits() uint64 {
	if l.rate.known {
		return uint64(l.rate.bits)
	}
	if l.cfg.Kind == KindAudio {
		return 60_000
	}
	height := cmp.Or(l.height, assumedHeight(l.cfg.RID))
	return uint64(height) * uint64(height) * assumedBits
}
