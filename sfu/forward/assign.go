package forward

import (
	"cmp"
	"slices"
	"time"
)

const (
	rankShown  = iota
	rankHeld   // its publisher is expected back
	rankMuted  // a picture is expected
	rankHidden // hidden by the page
)

type choice struct {
	key    trackKey
	pub    *publication // nil: a held place
	rank   int
	placed bool
}

// Marks replace maps: the cost grows with the slots, not with the room.
type assignment struct {
	room    *Room
	sub     *subscriber
	slots   []*Slot
	ranking *ranking
	now     time.Time

	shown   []*publication // by slot; nil: nothing
	choices []choice
	kept    []*publication
	moved   []*Slot
	seen    uint64
}

func (a *assignment) candidate(p *publication) bool {
	return p.key.peer != a.sub.peer && a.slots[0].takes(p.layers[0])
}

// scarce: more candidates than slots.
func (a *assignment) assign(kind Kind) (scarce bool) {
	a.shown, a.choices, a.seen = a.shown[:0], a.choices[:0], a.room.mark()
	for _, s := range a.slots {
		p := a.room.shown(s)
		if p != nil && (p.kind != kind || len(p.layers) == 0 || !a.candidate(p)) {
			p = nil
		}
		a.shown = append(a.shown, p)
	}
	count := 0
	for _, p := range a.ranking.arrived {
		if a.candidate(p) {
			if count++; count > len(a.slots) {
				break
			}
		}
	}
	scarce = count > len(a.slots)
	switch {
	case kind == KindAudio:
		a.sounds(scarce)
	case a.sub.hasView:
		a.wanted()
	default:
		a.pictures()
	}
	a.place()
	return scarce
}

// sounds shows everybody while they fit. Else screens have up to half of the slots, and a speaker replaces whoever was
// silent longest.
func (a *assignment) sounds(scarce bool) {
	if scarce {
		a.shared((len(a.slots) + 1) / 2)
		a.mostSpoken(len(a.slots) - len(a.choices))
	} else {
		a.rest(true)
	}
	a.holdPlaces()
}

func (a *assignment) wanted() {
	for i := range a.sub.wants {
		w := &a.sub.wants[i]
		p := a.room.sources[trackKey{peer: w.Peer, source: w.Source}]
		switch {
		case p == nil || p.kind != KindVideo || len(p.layers) == 0 || !a.candidate(p):
		case w.hidden():
			a.choose(p, rankHidden)
		case p.muted:
			a.choose(p, rankMuted)
		default:
			a.choose(p, rankShown)
		}
	}
	a.holdPlaces()
	slices.SortStableFunc(a.choices, func(a, b choice) int { return cmp.Compare(a.rank, b.rank) })
}

func (a *assignment) pictures() {
	a.shared(len(a.slots))
	a.mostSpoken(len(a.slots) - len(a.choices))
	a.holdPlaces()
	a.rest(false)
}

// shared chooses up to n screens, or their sound: those in slots, then by arrival.
func (a *assignment) shared(n int) {
	present := a.room.mark()
	for _, p := range a.shown {
		if p != nil {
			p.present = present
		}
	}
	for _, first := range []bool{true, false} {
		for _, p := range a.ranking.shared {
			if len(a.choices) < n && (p.present == present) == first && a.candidate(p) {
				a.choose(p, rankShown)
			}
		}
	}
}

func (a *assignment) choose(p *publication, rank int) {
	if p.chosen != a.seen {
		p.chosen = a.seen
		a.choices = append(a.choices, choice{key: p.key, pub: p, rank: rank})
	}
}

func (a *assignment) rest(all bool) {
	for _, p := range a.ranking.arrived {
		if len(a.choices) >= len(a.slots) {
			return
		}
		if (all || p.muted) && a.candidate(p) {
			a.choose(p, rankMuted)
		}
	}
}

func (a *assignment) holdPlaces() {
	for i, s := range a.slots {
		key := s.entry.key()
		if a.shown[i] == nil && key.peer != "" && a.heldChoice(key) == nil && a.held(key) {
			a.choices = append(a.choices, choice{key: key, rank: rankHeld})
		}
	}
}

// held reports whether a publisher who is gone is expected back.
func (a *assignment) held(key trackKey) bool {
	return key.peer != a.sub.peer && a.sub.holds[key].After(a.now)
}

func (a *assignment) heldChoice(key trackKey) *choice {
	for i := range a.choices {
		if c := &a.choices[i]; c.pub == nil && c.key == key {
			return c
		}
	}
	return nil
}

func (a *assignment) mostSpoken(n int) {
	kept, present := a.kept[:0], a.room.mark()
	for _, p := range a.shown {
		if p != nil && p.contends() && p.present != present {
			p.present = present
			kept = append(kept, p)
		}
	}
	others := a.ranking.spoken
	next := func() *publication {
		for len(others) > 0 && (others[0].present == present || !a.candidate(others[0])) {
			others = others[1:]
		}
		if len(others) == 0 {
			return nil
		}
		return others[0]
	}
	for p := next(); len(kept) < n && p != nil; p = next() {
		kept, others = append(kept, p), others[1:]
	}
	slices.SortStableFunc(kept, comparePlaces)
	a.kept = kept
	kept = kept[:min(len(kept), n)]
	for i := len(kept) - 1; i >= 0; i-- {
		p := next()
		if p == nil || kept[i].speaking || !p.speaking {
			break
		}
		kept[i], others = p, others[1:]
	}
	for _, p := range kept {
		a.choose(p, rankShown)
	}
}

func (a *assignment) place() {
	a.choices = a.choices[:min(len(a.choices), len(a.slots))]
	mark := a.room.mark()
	for i := range a.choices {
		if p := a.choices[i].pub; p != nil {
			p.chosen, p.choice = mark, i
		}
	}
	for i, s := range a.slots {
		var c *choice
		if p := a.shown[i]; p == nil {
			c = a.heldChoice(s.entry.key())
		} else if p.chosen == mark {
			c = &a.choices[p.choice]
		}
		switch {
		case c != nil && !c.placed:
			c.placed = true
		case s.entry.Peer != "":
			a.show(s, trackKey{}, nil)
		}
	}
	for _, fit := range []func(*Slot, trackKey) bool{besideSound, spare, anywhere} {
		for i := range a.choices {
			c := &a.choices[i]
			if c.placed {
				continue
			}
			at := slices.IndexFunc(a.slots, func(s *Slot) bool { return s.entry.Peer == "" && fit(s, c.key) })
			if at >= 0 {
				a.show(a.slots[at], c.key, c.pub)
				c.placed = true
			}
		}
	}
}

func (a *assignment) show(s *Slot, key trackKey, p *publication) {
	s.entry.Peer, s.entry.Source, s.entry.Paused = key.peer, key.source, false
	s.source = p
	if !s.moved {
		a.moved = append(a.moved, s)
	}
	s.moved, a.sub.moved = true, true
}

func besideSound(s *Slot, key trackKey) bool {
	return key.source.Kind() == KindVideo && s.beside != nil && s.beside.entry.key() == key.soundOf()
}

func spare(s *Slot, key trackKey) bool { return key.source == SourceScreen && s.beside == nil }

func anywhere(*Slot, trackKey) bool { return true }

// pair swaps sound into the slot beside its owner's picture, where nobody hears the move.
func (a *assignment) pair(r *Room, sub *subscriber) {
	a.room, a.sub = r, sub
	sub.apart = false
	slots := sub.sounds.slots
	for i, left := 0, len(slots); i < len(slots) && left > 0; {
		s := slots[i]
		to := sub.heardBeside(s.entry)
		switch {
		case to == nil || to == s:
			i++
		case r.rests(s) && r.rests(to):
			here, there := r.shown(s), r.shown(to)
			key := s.entry.key()
			a.show(s, to.entry.key(), there)
			a.show(to, key, here)
			left-- // the other one came
		default:
			sub.apart = true
			i++
		}
	}
}
