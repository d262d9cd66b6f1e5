package forward

import (
	"cmp"
	"slices"
	"strings"

	"github.com/holdfast-rtc/holdfast/sfu/forward/layerfilter"
)

type layerChoice struct {
	rid string
	// height is 0 if it is unknown.
	height        int
	alive         bool
	bits          uint64 // a second
	layer         *Layer
	level         Level
	spatial, upTo uint8
}

// ridRank orders layers by the customary names of their RIDs.
func ridRank(rid string) int {
	switch strings.ToLower(rid) {
	case "q", "l", "low", "0":
		return 0
	case "h", "m", "mid", "medium", "1":
		return 1
	default:
		return 2
	}
}

func assumedHeight(rid string) int { return 180 << ridRank(rid) }

func (c layerChoice) effectiveHeight() int {
	if c.height > 0 {
		return c.height
	}
	return assumedHeight(c.rid)
}

// highestTemporal returns the highest temporal layer that is worth leaving out; 0 if there is none.
func (c *layerChoice) highestTemporal() uint8 {
	d := &c.layer.described
	if d.structure == nil {
		return c.layer.highestTemporal()
	}
	top, ok := d.target(c.spatial, layerfilter.AllTemporal)
	if !ok || !d.rates[top].known {
		return 0
	}
	highest := d.structure.Target(top).Temporal
	for ; highest > 0; highest-- {
		if below, ok := d.target(c.spatial, highest-1); ok && d.rates[below].bits < (1-leastShare)*d.rates[top].bits {
			break
		}
	}
	return highest
}

func (c *layerChoice) bitsUpTo(highest uint8) uint64 {
	d := &c.layer.described
	if d.structure == nil {
		return c.layer.bitsUpTo(highest)
	}
	if target, ok := d.target(c.spatial, highest); ok {
		return uint64(d.rates[target].bits)
	}
	return c.bits
}

// usableByHeight sorts the choices in place, lowest first. It leaves out layers that are not alive, unless none is.
func usableByHeight(layers []layerChoice) []layerChoice {
	if slices.ContainsFunc(layers, func(c layerChoice) bool { return c.alive }) {
		layers = slices.DeleteFunc(layers, func(c layerChoice) bool { return !c.alive })
	}
	slices.SortStableFunc(layers, func(a, b layerChoice) int { return cmp.Compare(a.effectiveHeight(), b.effectiveHeight()) })
	return layers
}

// upToHeight returns the choices up to the lowest one that has at least the wanted height, or all if none has.
func upToHeight(rungs []layerChoice, wanted int) []layerChoice {
	for i, c := range rungs {
		if height := c.effectiveHeight(); height >= wanted || height == rungs[len(rungs)-1].effectiveHeight() {
			if !c.alive {
				return rungs[i : i+1]
			}
			for i+1 < len(rungs) && rungs[i+1].rid == c.rid && rungs[i+1].spatial == c.spatial {
				i++
			}
			return rungs[:i+1]
		}
	}
	return nil
}

// withTemporal adds cheaper variants of each spatial layer to the list of choices, so that the budget lowers the frame rate before the
// resolution. A higher layer gets one variant, without its top temporal layer; the lowest gets one for every temporal layer.
func withTemporal(all, rungs []layerChoice) []layerChoice {
	for i, c := range rungs {
		if c.alive && c.layer != nil {
			top := c.highestTemporal()
			for highest := range top {
				if i > 0 && highest != top-1 {
					continue
				}
				less := c
				less.upTo, less.bits = highest, c.bitsUpTo(highest)
				all = append(all, less)
			}
		}
		all = append(all, c)
	}
	return all
}
