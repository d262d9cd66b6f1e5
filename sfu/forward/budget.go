package forward

import (
	"cmp"
	"slices"
	"time"
)

const (
	// A step up needs this margin: a step back costs two keyframes.
	raiseMargin  = 1.15
	returnMargin = 1.05
	raiseAfter   = time.Second
	returnAfter  = 300 * time.Millisecond
)

type demand struct {
	slot   *Slot
	rank   int
	screen bool
	layers []layerChoice // lowest first
	top    int           // wanted
	held   int           // the target, -1: none of these
	chosen int           // -1: paused

	cut        bool // the path does not carry the target
	restrained bool // by the node's level
}

func (d *demand) cost(rung int) uint64 {
	bits := d.layers[rung].bits
	if rung > 0 {
		bits -= min(bits, d.layers[rung-1].bits)
	}
	return bits
}

// apportion spends what sound leaves of the budget. It returns the rate of everything; 0: that fits.
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

// hesitate takes back a step up that fits only since recently.
func (d *demand) hesitate(now time.Time) {
	s := d.slot
	switch {
	case d.chosen <= d.held:
		s.raised = time.Time{}
	case d.held < 0 && !s.paused:
		s.raised = time.Time{}
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

// allocate buys the lowest layers in the page's order, then screens, then each next layer of all cameras. A step that
// does not fit is passed over.
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

// Per second and squared line: 2 Mbit/s at 720.
const assumedBits = 4

type rateMeter struct {
	bytes uint64
	bits  float64 // per second, smoothed
	begun bool    // the next measurement covers a whole interval
	known bool
	young float64 // weight; the first few count alike
}

func (m *rateMeter) add(packetBytes int) {
	// SRTP, UDP and IP; the publisher's header stands for ours.
	const added = wireOverhead - 20
	m.bytes += uint64(packetBytes + added)
}

func (m *rateMeter) measure(elapsed time.Duration) {
	const weight = 0.25
	if elapsed <= 0 || elapsed > 10*lookInterval {
		m.bytes = 0 // after a sleep
		return
	}
	bits := float64(m.bytes*8) / elapsed.Seconds()
	switch {
	case m.known:
		m.young = max(m.young/(1+m.young), weight)
		m.bits += m.young * (bits - m.bits)
	case m.begun:
		m.known, m.bits, m.young = true, bits, 1
	default:
		m.begun = m.bytes > 0
	}
	m.bytes = 0
}
