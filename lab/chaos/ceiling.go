package chaos

import (
	"maps"
	"slices"

	"github.com/holdfast-rtc/holdfast/ring"
)

// UnderCeiling reads load reports: the larger of what a node sends and what its rooms have reserved.
func UnderCeiling(w *World) Verdict {
	v := verdict("no survivor over its ceiling", "whatever a node takes over from others, neither what it sends nor what it has reserved passes its ceilings")
	reports := 0
	for i, look := range w.looks() {
		for _, node := range slices.Sorted(maps.Keys(look.Loads)) {
			load := look.Loads[node]
			if load.CeilingBitsPerSecond == 0 || load.CeilingPacketsPerSecond == 0 {
				continue // not reported yet
			}
			reports++
			if load.EgressBitsPerSecond > load.CeilingBitsPerSecond || load.EgressPacketsPerSecond > load.CeilingPacketsPerSecond {
				v.broken("look %d: %s has %.1f Mbit/s and %d packets/s, its ceilings are %.1f and %d", i+1, node,
					float64(load.EgressBitsPerSecond)/1e6, load.EgressPacketsPerSecond, float64(load.CeilingBitsPerSecond)/1e6, load.CeilingPacketsPerSecond)
			}
		}
	}
	if reports == 0 {
		return v.unchecked("no media node reported its load")
	}
	return *v
}

func (w *World) looks() []Look { return append(append([]Look(nil), w.Between...), w.After) }

// fullest returns the largest share of a ceiling on an unhurt node.
func (w *World) fullest() float64 {
	most := 0.0
	struck := make(map[ring.NodeID]bool)
	for _, name := range w.struckSFU() {
		struck[ring.NodeID(name)] = true
	}
	for _, look := range w.looks() {
		for node, load := range look.Loads {
			if !struck[node] && load.CeilingBitsPerSecond > 0 && load.CeilingPacketsPerSecond > 0 {
				most = max(most, float64(load.EgressBitsPerSecond)/float64(load.CeilingBitsPerSecond),
					float64(load.EgressPacketsPerSecond)/float64(load.CeilingPacketsPerSecond))
			}
		}
	}
	return most
}
