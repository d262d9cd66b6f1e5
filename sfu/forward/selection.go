package forward

import (
	"slices"
	"time"
)

// layerSelection decides which layer of its publication each slot is sent.
type layerSelection struct {
	members *members
	// round numbers the calls of Room.updateSubscribers, so that a publication's choices are listed once in each.
	round uint64
	// tally adds up what every level of the room would cost; nil outside of a measurement.
	tally   *Demand
	demands []slotDemand
}

// selectLayers gives each of a subscriber's slots its target, within the budget of the path and the level of the room. all: slots are
// all that the subscriber has, so that what it is short of can be told.
func (y *layerSelection) selectLayers(sub *subscriber, slots []*Slot, all bool, level Level, now time.Time) {
	y.demands = y.demands[:0]
	audio := uint64(0)
	for _, s := range slots {
		if sub.changed || s.moved {
			s.wanted = sub.wishFor(s.entry)
		}
		s.moved = false
		d, ok := y.layerDemand(s, now)
		if !ok {
			s.paused = false
			s.setTarget(nil, now)
			continue
		}
		// Sound is never reduced: it gets its best layer, and pictures share the budget that sound leaves.
		if s.cfg.Kind == KindAudio {
			audio += d.layers[d.top].bits
			s.setTarget(d.layers[d.top].layer, now)
			continue
		}
		y.demands = append(y.demands, d)
	}
	if all {
		sub.short = 0
	}
	if sub.budget > 0 {
		sub.short = fitBudget(y.demands, sub.budget, audio, now)
	}
	for i := range y.demands {
		d := &y.demands[i]
		d.cut = d.chosen < min(d.held, d.top)
	}
	if y.limitToLevel(y.demands, level) {
		sub.short = 0
	}
	if y.tally != nil {
		y.tally.Sound += audio
		y.tally.Aimed += audio
	}
	for i := range y.demands {
		y.demands[i].apply(now)
	}
}

// layerDemand lists the layers among which a slot may choose. It returns false if there is nothing to show.
func (y *layerSelection) layerDemand(s *Slot, now time.Time) (slotDemand, bool) {
	p := y.members.shown(s)
	if p == nil || len(p.layers) == 0 || s.wanted.hidden {
		return slotDemand{}, false
	}
	d := slotDemand{slot: s, rank: s.wanted.rank, screen: s.entry.Source == SourceScreen, held: -1}
	d.layers = upToHeight(p.layerChoices(y.round, now), s.wanted.height)
	if s.current == nil || s.current.cfg.key() != s.entry.key() {
		d.layers = awakeNow(d.layers, now)
	}
	d.top = len(d.layers) - 1
	d.chosen = d.top
	if s.target != nil && s.target.cfg.key() == s.entry.key() {
		for i, c := range d.layers {
			if c.layer == s.target && (d.held < 0 || !s.showsBelow(&c)) {
				d.held = i
			}
		}
		if d.held < 0 {
			d.held = d.top
		}
	}
	return d, true
}

// awakeNow leaves out the layers above the highest one that comes already, and wakes the highest: a picture begins with what there is.
func awakeNow(layers []layerChoice, now time.Time) []layerChoice {
	comes := slices.IndexFunc(layers, func(c layerChoice) bool { return !c.layer.asleep(now) })
	if comes < 0 || !layers[len(layers)-1].layer.asleep(now) {
		return layers
	}
	layers[len(layers)-1].layer.wake(now)
	for comes+1 < len(layers) && !layers[comes+1].layer.asleep(now) {
		comes++
	}
	return layers[:comes+1]
}

// apply makes the chosen layer the target of the slot.
func (d *slotDemand) apply(now time.Time) {
	paused := d.chosen < 0
	sub := d.slot.sub
	sub.moved = sub.moved || paused != d.slot.paused
	d.slot.paused, d.slot.limitedByNode = paused, d.limitedByNode
	var target *Layer
	if !paused {
		rung := &d.layers[d.chosen]
		target = rung.layer
		d.slot.limitLayers(rung, d.cut, now)
	}
	if d.cut {
		d.slot.cutTo(target, now)
	} else {
		d.slot.setTarget(target, now)
	}
}
