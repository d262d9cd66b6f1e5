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

// rearrange chooses layers while the keyframe is at hand.
func (r *Room) rearrange(l *Layer, now time.Time) {
	r.layersChanged = true
	if now.Sub(l.described.arranged) >= r.cfg.MinPLIInterval {
		l.described.arranged = now
		r.arrange(now)
	}
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

func (l *Layer) choices(to []layerChoice, now time.Time) []layerChoice {
	whole := layerChoice{layer: l, rid: l.cfg.RID, height: l.height, alive: l.usable(now), bits: l.bits(), spatial: allSpatial, upTo: allTemporal}
	d := &l.described
	if d.structure == nil || d.structure.SpatialLayers() == 1 || d.active == 0 {
		return append(to, whole)
	}
	for spatial := range uint8(d.structure.SpatialLayers()) {
		target, ok := d.target(spatial, allTemporal)
		if !ok {
			continue
		}
		c := whole
		c.spatial = spatial
		if c.height = d.structure.Resolution(int(spatial)).Height; c.height == 0 {
			c.height = assumedHeight(c.rid) >> (d.structure.SpatialLayers() - 1 - int(spatial))
		}
		c.bits = uint64(c.height) * uint64(c.height) * assumedBits
		if d.rates[target].known {
			c.bits = uint64(d.rates[target].bits)
		}
		to = append(to, c)
	}
	return to
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

func (s *Slot) above(c *layerChoice) bool {
	return c.spatial > s.spatial || c.spatial == s.spatial && c.upTo > s.temporal.wanted
}

// cut: the path does not carry the present layers.
func (s *Slot) limit(c *layerChoice, cut bool, now time.Time) {
	s.temporal.wanted = c.upTo
	if s.spatial == c.spatial {
		return
	}
	s.spatial = c.spatial
	if s.current != c.layer || s.targeting == nil {
		return
	}
	s.targeting.cut = cut
	if s.targeting.reaches(c) {
		return
	}
	if cut {
		s.rewriter.forget()
	}
	if !c.layer.keyframe.At.Equal(now) { // else it is at hand
		c.layer.requestKeyframe(s.sub, now)
	}
}
