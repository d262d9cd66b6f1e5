package forward

import (
	"cmp"
	"math"
	"slices"
)

// Level limits a room's pictures while its node is short of egress; 0 is sound alone. Cameras' higher layers go first,
// then screens', then the lowest layers.
type Level uint8

// Levels counts them; AllLevels is no limit.
const (
	Levels          = 48
	AllLevels Level = Levels - 1

	// The higher steps of screens begin at screenLevels, those of cameras at cameraLevels.
	screenLevels, cameraLevels = 16, 28
	// LowestLevels lets the lowest layer of every picture through.
	LowestLevels Level = screenLevels - 1

	// A step of leastBits has the first level of its kind, one of mostBits the last. A step keeps its level while its rate moves it by
	// less than levelSlack of a level, so that levels do not flicker.
	leastBits, mostBits = 50e3, 8e6
	levelSlack          = 0.4
)

// Demand is in bits per second on the wire.
type Demand struct {
	Sound uint64
	// Steps are what each level adds.
	Steps [Levels]uint64
	// Aimed is sound and the steps that the present level lets through.
	Aimed uint64
	// Guessed is what the present level lets through of layers that were not measured yet. Steps and Aimed do not contain it.
	Guessed uint64
}

// UpTo returns the rate of everything that a level lets through.
func (d *Demand) UpTo(level Level) uint64 {
	sum := d.Sound
	for _, bits := range d.Steps[:min(int(level)+1, Levels)] {
		sum += bits
	}
	return sum
}

// levelOf returns the level of a step. before is the step's last level, below 0 if it had none.
func levelOf(bits uint64, screen bool, before int) Level {
	first, n := cameraLevels, Levels-cameraLevels
	if screen {
		first, n = screenLevels, cameraLevels-screenLevels
	}
	at := math.Log(max(float64(bits), 1)/leastBits) / math.Log(mostBits/leastBits) * float64(n)
	if off := at - float64(before-first); before >= first && before < first+n && off > -levelSlack && off < 1+levelSlack {
		return Level(before)
	}
	return Level(first + int(min(max(at, 0), float64(n-1))))
}

// limitToLevel takes back the choices above the room's level, and reports whether there were any.
func (y *layerSelection) limitToLevel(demands []slotDemand, level Level) (held bool) {
	if level == AllLevels && y.tally == nil {
		return false
	}
	slices.SortStableFunc(demands, screensFirst)
	for i := range demands {
		d := &demands[i]
		least := min(Level(i)+1, LowestLevels)
		if d.screen {
			least = 1
		}
		allowed := -1
		for rung := range d.chosen + 1 {
			at := least
			if rung > 0 {
				at = max(at, d.layers[rung].level)
			}
			if at <= level {
				allowed = rung
			}
			if y.tally != nil && d.measured(rung) {
				y.tally.Steps[at] += d.cost(rung)
			}
		}
		for rung := 0; y.tally != nil && rung <= allowed; rung++ {
			if d.measured(rung) {
				y.tally.Aimed += d.cost(rung)
			} else {
				y.tally.Guessed += d.cost(rung)
			}
		}
		d.limitedByNode = allowed < d.chosen
		held = held || d.limitedByNode
		d.chosen = allowed
	}
	return held
}

// measured reports whether the rate of a choice is known. The rate that is assumed for the first half second may be far too high.
func (d *slotDemand) measured(rung int) bool {
	l := d.layers[rung].layer
	return l == nil || l.rate.known
}

func screensFirst(a, b slotDemand) int {
	switch {
	case a.screen == b.screen:
		return cmp.Compare(a.rank, b.rank)
	case a.screen:
		return -1
	default:
		return 1
	}
}

// tallyDemand returns what f, which selects the layers of all subscribers, adds up.
func (y *layerSelection) tallyDemand(f func()) Demand {
	var sum Demand
	y.tally = &sum
	defer func() { y.tally = nil }()
	f()
	return sum
}
