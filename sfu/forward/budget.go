package forward

import (
	"cmp"
	"slices"
	"time"
)

const (
	// A step up must fit with this margin for raiseAfter, because a step back costs two keyframes. From nothing it needs less.
	raiseMargin  = 1.15
	returnMargin = 1.05
	raiseAfter   = time.Second
	returnAfter  = 300 * time.Millisecond
)

type slotDemand struct {
	slot   *Slot
	rank   int
	screen bool
	// layers are the choices, lowest first.
	layers []layerChoice
	// top is the highest choice that the page wants.
	top int
	// held is the choice that is sent now; -1 if it is none of them.
	held int
	// chosen is what the slot gets; -1 pauses it.
	chosen int

	// cut: the path does not carry the present target any more.
	cut bool
	// limitedByNode: the node's level allows less than the path.
	limitedByNode bool
}

func (d *slotDemand) cost(rung int) uint64 {
	bits := d.layers[rung].bits
	if rung > 0 {
		bits -= min(bits, d.layers[rung-1].bits)
	}
	return bits
}

// fitBudget spends what sound leaves of the budget. It returns the rate of everything that is wanted, with the margin of a step up, or 0 if
// all of it is sent.
func fitBudget(demands []slotDemand, budget, audio uint64, now time.Time) (short uint64) {
	spendBudget(demands, budget-min(budget, audio))
	all, limited := audio, false
	for i := range demands {
		d := &demands[i]
		limited = limited || d.chosen < d.top
		for rung := range d.top + 1 {
			all += d.cost(rung)
		}
		d.delayRaise(now)
	}
	if !limited {
		return 0
	}
	return uint64(float64(all) * raiseMargin)
}

// delayRaise takes back a step up that has not fit for long enough.
func (d *slotDemand) delayRaise(now time.Time) {
	s := d.slot
	switch {
	case d.chosen <= d.held:
		s.affordableSince = time.Time{}
	case d.held < 0 && !s.paused:
		s.affordableSince = time.Time{}
	case s.affordableSince.IsZero():
		s.affordableSince = now
		d.chosen = d.held
	case now.Sub(s.affordableSince) < raiseDelay(d.held):
		d.chosen = d.held
	default:
		s.affordableSince = time.Time{}
	}
}

func raiseDelay(held int) time.Duration {
	if held < 0 {
		return returnAfter
	}
	return raiseAfter
}

// spendBudget buys the lowest layers in the page's order, then the higher layers of screens, then each next layer of all cameras. It passes
// over a step that does not fit.
func spendBudget(demands []slotDemand, budget uint64) {
	slices.SortStableFunc(demands, func(a, b slotDemand) int { return cmp.Compare(a.rank, b.rank) })
	highest := 0
	for i := range demands {
		demands[i].chosen = -1
		highest = max(highest, demands[i].top)
	}
	step := func(d *slotDemand, rung int) {
		if d.chosen != rung-1 || rung > d.top {
			return
		}
		needed := d.cost(rung)
		if rung > d.held {
			needed = uint64(float64(needed) * marginFor(rung))
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

func marginFor(rung int) float64 {
	if rung == 0 {
		return returnMargin
	}
	return raiseMargin
}
