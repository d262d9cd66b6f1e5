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
		r.audioScarce = false
	}
	for _, sub := range r.subscribers {
		if r.tablesChanged || sub.changed {
			r.arrangeTable(sub, now)
		}
		if r.tablesChanged || sub.changed || r.layersChanged {
			for _, s := range sub.slots {
				r.chooseTarget(sub, s, now)
			}
		}
		sub.changed = false
	}
	r.tablesChanged, r.layersChanged = false, false
}

func (r *Room) arrangeTable(sub *subscriber, now time.Time) {
	table := make([]Entry, len(sub.slots))
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
			r.audioScarce = r.audioScarce || len(candidates) > len(slots)
			assigned = assignAudio(v, candidates)
		} else {
			assigned = assignVideo(v, r.candidates(sub, slots[0]))
		}
		for i, s := range slots {
			s.entry = assigned[i]
		}
	}
	for i, s := range sub.slots {
		table[i] = s.entry
	}
	r.tell(sub.peer, table)
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
		if v := r.speakers.voices[pub.key.peer]; v != nil && pub.key.source == SourceMicrophone {
			c.speaking, c.lastSpoke = v.speaking, v.lastSpoke
		}
		list = append(list, c)
	}
	return list
}

// tell reports a table that changed.
func (r *Room) tell(peer PeerID, table []Entry) {
	r.mu.Lock()
	same := slices.Equal(r.tables[peer], table)
	if !same {
		r.tables[peer] = table
	}
	r.mu.Unlock()
	if !same && r.cfg.OnSlots != nil {
		r.cfg.OnSlots(peer, slices.Clone(table))
	}
}

// chooseTarget decides which layer of what it shows a slot aims at.
func (r *Room) chooseTarget(sub *subscriber, s *Slot, now time.Time) {
	wanted, hidden := sub.wantedHeight(s.entry)
	if s.entry.Peer == "" || hidden {
		s.aim(nil, now)
		return
	}
	i := slices.IndexFunc(r.publications, func(p *publication) bool { return p.key == s.entry.key() })
	if i < 0 {
		s.aim(nil, now)
		return
	}
	layers := r.publications[i].layers
	choices := make([]layerChoice, len(layers))
	for i, l := range layers {
		choices[i] = layerChoice{rid: l.cfg.RID, height: l.height, alive: l.alive(now)}
	}
	chosen := chooseLayer(choices, wanted)
	if chosen < 0 {
		s.aim(nil, now)
		return
	}
	s.aim(layers[chosen], now)
}

// wantedHeight is what the page wants of an entry. Without a view that is the
// lowest layer. Sound is never hidden: a view speaks of pictures.
func (sub *subscriber) wantedHeight(e Entry) (height int, hidden bool) {
	if !sub.hasView || e.Kind != KindVideo {
		return 0, false
	}
	for _, w := range sub.wants {
		if w.Peer == e.Peer && w.Source == e.Source {
			return w.Height, w.hidden()
		}
	}
	return 0, false
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
