package forward

import (
	"cmp"
	"math"
	"slices"
)

// Level is how much of its pictures a room may send while its node is short of egress: each step of a picture, from nothing to
// its lowest layer and from one layer to the next, has a level, and those above the room's are not sent. The largest pictures of
// cameras go first, then those of screens, then the lowest layers, from the end of each page's order. Level 0 is sound alone.
type Level uint8

// Levels is how many there are; AllLevels holds nothing back.
const (
	Levels          = 48
	AllLevels Level = Levels - 1

	// From here on steps are screens' beyond their lowest layer, and from there on cameras'.
	screenLevels, cameraLevels = 16, 28
	// LowestLevels is the room that sends everybody's lowest layers, and nothing beyond.
	LowestLevels Level = screenLevels - 1

	// A step is placed by the bits of its picture, on a scale of logarithms between these. It keeps its place while they leave it by
	// less than levelSlack of a place, because rates vary.
	leastBits, mostBits = 50e3, 8e6
	levelSlack          = 0.4
)

// Demand is what a room would send, in bits per second on the wire.
type Demand struct {
	Sound uint64
	Steps [Levels]uint64 // what each level adds
	Aimed uint64         // sound and what is let through of the steps now
}

// UpTo is what the room would send at a level.
func (d *Demand) UpTo(level Level) uint64 {
	sum := d.Sound
	for _, bits := range d.Steps[:min(int(level)+1, Levels)] {
		sum += bits
	}
	return sum
}

// Demand is as of the last look, at most lookInterval ago.
func (r *Room) Demand() Demand {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wants
}

// SetLevel says how much may be sent. It does not block.
func (r *Room) SetLevel(level Level) {
	if Level(r.level.Swap(uint32(min(level, AllLevels)))) != level {
		r.try(func() { r.layersChanged, r.restless = true, true }) // If the loop has too much to do, it looks soon by itself.
	}
}

// levelOf places a picture of so many bits; before is where it was, below 0 for nowhere.
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

// place gives each rung of a ladder its level, never below that of the rung before it. The lowest rung's depends on the viewer.
func (p *publication) place() {
	if len(p.levels) != len(p.rungs) {
		p.levels = slices.Repeat([]int{-1}, len(p.rungs))
	}
	screen, least := p.key.source == SourceScreen, Level(0)
	for i := range p.rungs {
		if i == 0 {
			continue
		}
		own := levelOf(p.rungs[i].bits, screen, p.levels[i])
		p.levels[i] = int(own)
		least = max(least, own)
		p.rungs[i].level = least
	}
}

// restrain takes from the demands of one subscriber what is above the room's level, and adds them up. Screens come first.
func (r *Room) restrain(demands []demand) (held bool) {
	level := Level(r.level.Load())
	if level == AllLevels && r.adding == nil {
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
			if r.adding != nil && d.measured(rung) {
				r.adding.Steps[at] += d.cost(rung)
			}
		}
		for rung := 0; r.adding != nil && rung <= allowed; rung++ {
			if d.measured(rung) {
				r.adding.Aimed += d.cost(rung)
			}
		}
		d.restrained = allowed < d.chosen
		held = held || d.restrained
		d.chosen = allowed
	}
	return held
}

// measured: what is only assumed of a layer, for the first half second, may be far too much.
func (d *demand) measured(rung int) bool {
	l := d.layers[rung].layer
	return l == nil || l.rate.known
}

func screensFirst(a, b demand) int {
	switch {
	case a.screen == b.screen:
		return cmp.Compare(a.rank, b.rank)
	case a.screen:
		return -1
	default:
		return 1
	}
}

// addUp has a look at everybody's layers add up what the room would send.
func (r *Room) addUp(look func()) {
	var sum Demand
	r.adding = &sum
	defer func() {
		r.adding = nil
		r.mu.Lock()
		defer r.mu.Unlock()
		r.wants = sum
	}()
	look()
}
