package forward

import (
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/descriptor"
)

const allSpatial = 0xFF

type description struct {
	structure *descriptor.Structure
	active    uint32
	rates     []rateMeter
	arranged  time.Time // last chosen at once
}

// newest: no later packet came.
func (d *description) receive(p *Packet, newest bool) (changed bool) {
	f := &p.frame
	if !f.Known {
		return false
	}
	if newest && (f.Structure != d.structure || f.Active != d.active) {
		if d.structure == nil || f.Structure.TargetCount() != len(d.rates) {
			d.rates = make([]rateMeter, f.Structure.TargetCount())
		}
		d.structure, d.active, changed = f.Structure, f.Active, true
	}
	if f.Structure == d.structure {
		for target := range descriptor.Targets(f.Present) {
			d.rates[target].add(p.length)
		}
	}
	return changed
}

func (d *description) measure(elapsed time.Duration) {
	for i := range d.rates {
		d.rates[i].measure(elapsed)
	}
}

// target has the most temporal layers up to a limit.
func (d *description) target(spatial, temporal uint8) (int, bool) {
	best, found := 0, false
	for i := range descriptor.Targets(d.active) {
		l := d.structure.Target(i)
		if (spatial == allSpatial || l.Spatial == spatial) && l.Temporal <= temporal && (!found || higher(l, d.structure.Target(best))) {
			best, found = i, true
		}
	}
	return best, found
}

func higher(a, b descriptor.Layer) bool {
	return a.Spatial > b.Spatial || a.Spatial == b.Spatial && a.Temporal > b.Temporal
}

// highestTemporal is the highest worth leaving out; 0: none.
func (c *layerChoice) highestTemporal() uint8 {
	d := &c.layer.described
	if d.structure == nil {
		return c.layer.highestTemporal()
	}
	top, ok := d.target(c.spatial, allTemporal)
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
