package forward

import (
	"maps"
	"slices"
	"time"
)

func (r *Room) arrange(now time.Time) {
	if r.tablesChanged || r.speakersChanged {
		r.rank()
	}
	if r.tablesChanged {
		r.scarce = false
	}
	r.looks++
	r.apart = false
	for _, sub := range r.subscribers {
		r.arrangeFor(sub, now)
		r.apart = r.apart || sub.apart
	}
	r.tablesChanged, r.speakersChanged, r.layersChanged = false, false, false
}

func (r *Room) arrangeFor(sub *subscriber, now time.Time) {
	defer r.surviveFor(sub)
	anew := r.tablesChanged || sub.changed
	r.assignment.moved = r.assignment.moved[:0]
	pair := sub.apart && r.speakersChanged
	for _, kind := range []Kind{KindAudio, KindVideo} {
		if !r.frozen && (anew || r.speakersChanged && r.unseated(sub, kind)) {
			r.assign(sub, kind, now)
			pair = true
		}
	}
	if pair {
		r.assignment.pair(r, sub)
	}
	// Only a budget ties slots together.
	all := anew || r.layersChanged || sub.budget > 0
	if anew || r.layersChanged || sub.moved {
		r.chooseTargets(sub, now, all)
	}
	var told bool
	switch {
	case anew || sub.moved && all:
		told = r.tell(sub)
	case sub.moved:
		told = r.tellMoved(sub)
	}
	if told && r.cfg.OnSlots != nil {
		r.cfg.OnSlots(sub.peer)
	}
	sub.changed, sub.moved = false, false
}

// Only an unseated speaker moves slots.
func (r *Room) unseated(sub *subscriber, kind Kind) bool {
	group, k := sub.group(kind), r.ranking(kind)
	return group.scarce && slices.ContainsFunc(k.spoken[:k.speaking], func(p *publication) bool {
		return p.key.peer != sub.peer && !slices.ContainsFunc(group.slots, func(s *Slot) bool { return r.shown(s) == p })
	})
}

func (r *Room) assign(sub *subscriber, kind Kind, now time.Time) {
	group := sub.group(kind)
	if len(group.slots) == 0 {
		return
	}
	a := &r.assignment
	a.room, a.sub, a.slots, a.ranking, a.now = r, sub, group.slots, r.ranking(kind), now
	// With a view, the page decides who is shown.
	group.scarce = a.assign(kind) && (kind == KindAudio || !sub.hasView)
	r.scarce = r.scarce || group.scarce
}

func (r *Room) tell(sub *subscriber) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	table := r.tables[sub.peer]
	for i, s := range sub.slots {
		s.position = i
	}
	if slices.EqualFunc(table, sub.slots, func(e Entry, s *Slot) bool { return e == s.told() }) {
		return false
	}
	table = table[:0]
	for _, s := range sub.slots {
		table = append(table, s.told())
	}
	r.tables[sub.peer] = table
	return true
}

func (r *Room) tellMoved(sub *subscriber) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.assignment.moved {
		r.tables[sub.peer][s.position] = s.told()
	}
	return true
}

func (s *Slot) told() Entry {
	e := s.entry
	e.Paused = s.paused && e.Peer != ""
	return e
}

func (r *Room) chooseTargets(sub *subscriber, now time.Time, all bool) {
	slots := sub.slots
	if !all {
		slots = r.assignment.moved
	}
	r.demands = r.demands[:0]
	audio := uint64(0)
	for _, s := range slots {
		if sub.changed || s.moved {
			s.wanted = sub.wanted(s.entry)
		}
		s.moved = false
		d, ok := r.demand(s, now)
		if !ok {
			s.paused = false
			s.aim(nil, now)
			continue
		}
		if s.cfg.Kind == KindAudio {
			audio += d.layers[d.top].bits
			s.aim(d.layers[d.top].layer, now)
			continue
		}
		r.demands = append(r.demands, d)
	}
	if all {
		sub.short = 0
	}
	if sub.budget > 0 {
		sub.short = apportion(r.demands, sub.budget, audio, now)
	}
	for i := range r.demands {
		d := &r.demands[i]
		d.cut = d.chosen < min(d.held, d.top)
	}
	if r.restrain(r.demands) {
		sub.short = 0
	}
	if r.adding != nil {
		r.adding.Sound += audio
		r.adding.Aimed += audio
	}
	for i := range r.demands {
		r.aim(sub, &r.demands[i], now)
	}
}

func (r *Room) aim(sub *subscriber, d *demand, now time.Time) {
	paused := d.chosen < 0
	sub.moved = sub.moved || paused != d.slot.paused
	d.slot.paused, d.slot.restrained = paused, d.restrained
	var target *Layer
	if !paused {
		rung := &d.layers[d.chosen]
		target = rung.layer
		d.slot.limit(rung, d.cut, now)
	}
	if d.cut {
		d.slot.cut(target, now)
	} else {
		d.slot.aim(target, now)
	}
}

// false: nothing to show.
func (r *Room) demand(s *Slot, now time.Time) (demand, bool) {
	p := r.shown(s)
	if p == nil || len(p.layers) == 0 || s.wanted.hidden {
		return demand{}, false
	}
	d := demand{slot: s, rank: s.wanted.rank, screen: s.entry.Source == SourceScreen, held: -1}
	d.layers = reach(p.ladder(r.looks, now), s.wanted.height)
	d.top = len(d.layers) - 1
	d.chosen = d.top
	if s.target != nil && s.target.cfg.key() == s.entry.key() {
		for i, c := range d.layers {
			if c.layer == s.target && (d.held < 0 || !s.above(&c)) {
				d.held = i
			}
		}
		if d.held < 0 {
			d.held = d.top
		}
	}
	return d, true
}

func (p *publication) ladder(look uint64, now time.Time) []layerChoice {
	if p.looked != look {
		p.looked, p.whole = look, p.whole[:0]
		for _, l := range p.layers {
			p.whole = l.choices(p.whole, now)
		}
		p.rungs = withTemporal(p.rungs[:0], ladder(p.whole))
		p.place()
	}
	return p.rungs
}

// wish is an entry's rank in the page's order, and the wanted height.
type wish struct {
	rank, height int
	hidden       bool
}

// Without a view the lowest layer is wanted. Sound is never hidden.
func (sub *subscriber) wanted(e Entry) wish {
	if !sub.hasView || e.Kind != KindVideo {
		return wish{}
	}
	for i, w := range sub.wants {
		if w.Peer == e.Peer && w.Source == e.Source {
			return wish{rank: i, height: w.Height, hidden: w.hidden()}
		}
	}
	return wish{rank: len(sub.wants)}
}

func (r *Room) expireHolds(now time.Time) {
	for _, sub := range r.subscribers {
		before := len(sub.holds)
		maps.DeleteFunc(sub.holds, func(_ trackKey, until time.Time) bool { return !until.After(now) })
		if len(sub.holds) != before {
			sub.changed = true
		}
	}
}
