package forward

import (
	"maps"
	"slices"
	"time"
)

// arrange works out again who is shown where, if something changed, and which
// layer of it.
func (r *Room) arrange(now time.Time) {
	if r.tablesChanged {
		r.scarce = false
	}
	for _, sub := range r.subscribers {
		if r.tablesChanged || sub.changed {
			r.arrangeTable(sub, now)
		}
		if r.tablesChanged || sub.changed || r.layersChanged {
			r.chooseTargets(sub, now)
			r.tell(sub)
		}
		sub.changed = false
	}
	r.tablesChanged, r.layersChanged = false, false
}

func (r *Room) arrangeTable(sub *subscriber, now time.Time) {
	for _, kind := range []Kind{KindAudio, KindVideo} {
		var slots []*Slot
		v := viewer{hasView: sub.hasView, wants: sub.wants, held: func(key trackKey) bool {
			return key.peer != sub.peer && sub.holds[key].After(now)
		}}
		for _, s := range sub.slots {
			if s.cfg.Kind == kind {
				slots = append(slots, s)
				v.slots = append(v.slots, s.entry)
			}
		}
		if len(slots) == 0 {
			continue
		}
		var assigned []Entry
		if kind == KindAudio {
			candidates := r.candidates(sub, slots[0])
			r.scarce = r.scarce || len(candidates) > len(slots)
			assigned = assignAudio(v, candidates)
		} else {
			candidates := r.candidates(sub, slots[0])
			r.scarce = r.scarce || !sub.hasView && len(candidates) > len(slots)
			assigned = assignVideo(v, candidates)
		}
		for i, s := range slots {
			s.entry = assigned[i]
		}
	}
}

// candidates lists what a subscriber could be shown in slots of one kind.
func (r *Room) candidates(sub *subscriber, slot *Slot) []candidate {
	var list []candidate
	for _, pub := range r.publications {
		if pub.kind != slot.cfg.Kind || len(pub.layers) == 0 || pub.key.peer == sub.peer {
			continue
		}
		if _, ok := match(slot.cfg.Codecs, pub.layers[0].cfg.Codec); !ok {
			continue
		}
		c := candidate{key: pub.key, muted: pub.muted}
		if v := r.speakers.voices[pub.key.peer]; v != nil {
			c.speaking, c.lastSpoke = v.speaking, v.lastSpoke
		}
		list = append(list, c)
	}
	return list
}

// tell reports the subscriber's table if it has changed.
func (r *Room) tell(sub *subscriber) {
	r.mu.Lock()
	same := slices.EqualFunc(r.tables[sub.peer], sub.slots, func(e Entry, s *Slot) bool { return e == s.told() })
	if same {
		r.mu.Unlock()
		return
	}
	table := make([]Entry, len(sub.slots))
	for i, s := range sub.slots {
		table[i] = s.told()
	}
	r.tables[sub.peer] = table
	r.mu.Unlock()
	if r.cfg.OnSlots != nil {
		r.cfg.OnSlots(sub.peer, slices.Clone(table))
	}
}

// told is the slot's entry in the table.
func (s *Slot) told() Entry {
	e := s.entry
	e.Paused = s.paused && e.Peer != ""
	return e
}

// chooseTargets decides which layer of what it shows each slot aims at.
func (r *Room) chooseTargets(sub *subscriber, now time.Time) {
	r.demands = r.demands[:0]
	audio := uint64(0)
	for _, s := range sub.slots {
		d, ok := r.demand(sub, s, now)
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
	sub.short = 0
	if sub.budget > 0 {
		sub.short = apportion(r.demands, sub.budget, audio, now)
	}
	for i := range r.demands {
		d := &r.demands[i]
		d.slot.paused = d.chosen < 0
		var target *Layer
		if !d.slot.paused {
			target = d.layers[d.chosen].layer
		}
		if d.chosen < min(d.held, d.top) {
			d.slot.cut(target, now)
		} else {
			d.slot.aim(target, now)
		}
	}
}

// demand says what a slot could show of its entry, false for nothing.
func (r *Room) demand(sub *subscriber, s *Slot, now time.Time) (demand, bool) {
	if s.entry.Peer == "" {
		return demand{}, false
	}
	rank, wanted, hidden := sub.wanted(s.entry)
	i := slices.IndexFunc(r.publications, func(p *publication) bool { return p.key == s.entry.key() })
	if hidden || i < 0 || len(r.publications[i].layers) == 0 {
		return demand{}, false
	}
	choices := make([]layerChoice, len(r.publications[i].layers))
	for i, l := range r.publications[i].layers {
		choices[i] = layerChoice{layer: l, rid: l.cfg.RID, height: l.height, alive: l.usable(now), bits: l.bits()}
	}
	d := demand{slot: s, rank: rank, screen: s.entry.Source == SourceScreen, held: -1}
	d.layers, d.top = ladder(choices, wanted)
	d.chosen = d.top
	if s.target != nil && s.target.cfg.key() == s.entry.key() {
		d.held = slices.IndexFunc(d.layers, func(c layerChoice) bool { return c.layer == s.target })
		if d.held < 0 {
			d.held = d.top // It shows more than is wanted now, or a layer that fell silent.
		}
	}
	return d, true
}

// wanted is what the page wants of an entry: its place in the page's order, and
// its height. Without a view that is the lowest layer. Sound is never hidden: a
// view speaks of pictures.
func (sub *subscriber) wanted(e Entry) (rank, height int, hidden bool) {
	if !sub.hasView || e.Kind != KindVideo {
		return 0, 0, false
	}
	for i, w := range sub.wants {
		if w.Peer == e.Peer && w.Source == e.Source {
			return i, w.Height, w.hidden()
		}
	}
	return len(sub.wants), 0, false
}

// expireHolds gives up places that were kept long enough.
func (r *Room) expireHolds(now time.Time) {
	for _, sub := range r.subscribers {
		before := len(sub.holds)
		maps.DeleteFunc(sub.holds, func(_ trackKey, until time.Time) bool { return !until.After(now) })
		if len(sub.holds) != before {
			sub.changed = true
		}
	}
}
