package forward

import (
	"cmp"
	"slices"
	"time"
)

const (
	rankShown = iota
	// The publisher is expected back.
	rankHeld
	// The picture is expected back.
	rankMuted
	// The page hides the picture.
	rankHidden
)

type slotChoice struct {
	key trackKey
	// pub is nil if the place is held for a publisher who is gone.
	pub    *publication
	rank   int
	placed bool
}

// assignment decides who is shown in which slot. One value serves all subscribers of a room, one after the other.
//
// Marks on publications replace sets of them: a publication is in a set if its field has the number of that set. So the cost grows
// with the slots of a subscriber, not with the room.
type assignment struct {
	members  *members
	speakers *speakerTracker

	sounds, pictures ranking
	lastMark         uint64
	// frozen keeps what every slot shows.
	frozen bool
	// scarce and apart tell whether any subscriber's slots may change when speakers change: scarce has more candidates than slots,
	// apart hears a speaker in another stream than it sees.
	scarce, apart bool

	// assigned counts the slots that were assigned so far, for tests.
	assigned uint64

	// The subscriber and the slots that are being assigned.
	sub     *subscriber
	slots   []*Slot
	ranking *ranking
	now     time.Time

	// shown is what each slot showed before; nil for nothing.
	shown   []*publication
	choices []slotChoice
	kept    []*publication
	moved   []*Slot
	seen    uint64
}

// assignSlots decides anew about all slots of a kind.
func (a *assignment) assignSlots(sub *subscriber, kind Kind, now time.Time) {
	group := sub.group(kind)
	if len(group.slots) == 0 {
		return
	}
	a.sub, a.slots, a.ranking, a.now = sub, group.slots, a.rankingOf(kind), now
	a.assigned += uint64(len(group.slots))
	group.scarce = a.assignKind(kind)
}

// hasSpeakerWithoutSlot reports whether somebody speaks whom the subscriber does not hear or see. Only that moves slots when the
// speakers change.
func (a *assignment) hasSpeakerWithoutSlot(sub *subscriber, kind Kind) bool {
	group, k := sub.group(kind), a.rankingOf(kind)
	return sub.prefersSpeakers(kind) && group.scarce && slices.ContainsFunc(k.spoken[:k.speaking], func(p *publication) bool {
		return p.key.peer != sub.peer && !slices.ContainsFunc(group.slots, func(s *Slot) bool { return a.members.shown(s) == p })
	})
}

// concernedByMutes reports whether the slots of a kind may show something else, because publications were muted or unmuted. It presumes that the
// slots were assigned before, and that another change is looked at for itself. A large room is spared the assignment of all slots by this.
func (a *assignment) concernedByMutes(sub *subscriber, kind Kind, publications []*publication) bool {
	return len(sub.group(kind).slots) > 0 && slices.ContainsFunc(publications, func(p *publication) bool {
		return p.kind == kind && len(p.layers) > 0 && p.key.peer != sub.peer && a.concernsMute(sub, p)
	})
}

func (a *assignment) concernsMute(sub *subscriber, p *publication) bool {
	group := sub.group(p.kind)
	switch {
	case p.key.source == SourceMicrophone:
		// A muted microphone keeps its slot until somebody speaks who has none.
		return false
	case p.kind == KindVideo && sub.hasView:
		return group.scarce && slices.ContainsFunc(sub.wants, func(w Want) bool { return w.Peer == p.key.peer && w.Source == p.key.source })
	case !group.scarce:
		// Everybody has a slot, muted or not, unless places are held for those who are gone.
		return p.kind == KindVideo && len(sub.holds) > 0
	case p.muted:
		// What has no slot does not get one by being muted.
		return sub.shows(p.key)
	default:
		// A camera takes the slot of another camera only if its owner speaks.
		return p.speaking || !p.contends() || slices.ContainsFunc(group.slots, func(s *Slot) bool {
			shown := a.members.shown(s)
			return shown == nil || shown.muted || len(shown.layers) == 0
		})
	}
}

// assignKind chooses publications for the slots of a kind and puts them there. scarce: there are more candidates than slots.
func (a *assignment) assignKind(kind Kind) (scarce bool) {
	a.shown, a.choices, a.seen = a.shown[:0], a.choices[:0], a.mark()
	for _, s := range a.slots {
		p := a.members.shown(s)
		if p != nil && (p.kind != kind || len(p.layers) == 0 || !a.eligible(p)) {
			p = nil
		}
		a.shown = append(a.shown, p)
	}
	if kind == KindVideo && a.sub.hasView {
		a.chooseWanted()
		scarce = len(a.choices) > len(a.slots)
		a.fillSlots()
		return scarce
	}
	count := 0
	for _, p := range a.ranking.arrived {
		if a.eligible(p) {
			if count++; count > len(a.slots) {
				break
			}
		}
	}
	scarce = count > len(a.slots)
	if kind == KindAudio {
		a.chooseSounds(scarce)
	} else {
		a.choosePictures()
	}
	a.fillSlots()
	return scarce
}

func (a *assignment) eligible(p *publication) bool {
	return p.key.peer != a.sub.peer && !a.sub.unheard[p.key] && a.slots[0].canReceive(p.layers[0])
}

// chooseSounds chooses everybody while they fit. Else the sound of screens has up to half of the slots, and a speaker replaces whoever was
// silent longest.
func (a *assignment) chooseSounds(scarce bool) {
	if scarce {
		a.chooseShared((len(a.slots) + 1) / 2)
		a.chooseSpeakers(len(a.slots) - len(a.choices))
	} else {
		a.chooseArrived(true)
	}
	a.chooseHeldPlaces()
}

func (a *assignment) chooseWanted() {
	for i := range a.sub.wants {
		w := &a.sub.wants[i]
		p := a.members.sources[trackKey{peer: w.Peer, source: w.Source}]
		switch {
		case p == nil || p.kind != KindVideo || len(p.layers) == 0 || !a.eligible(p):
		case w.hidden():
			a.addChoice(p, rankHidden)
		case p.muted:
			a.addChoice(p, rankMuted)
		default:
			a.addChoice(p, rankShown)
		}
	}
	a.chooseHeldPlaces()
	slices.SortStableFunc(a.choices, func(a, b slotChoice) int { return cmp.Compare(a.rank, b.rank) })
}

func (a *assignment) choosePictures() {
	a.chooseShared(len(a.slots))
	a.chooseSpeakers(len(a.slots) - len(a.choices))
	a.chooseHeldPlaces()
	a.chooseArrived(false)
}

// chooseShared chooses up to n screens, or their sound: first those that slots show, then the others by arrival.
func (a *assignment) chooseShared(n int) {
	present := a.mark()
	for _, p := range a.shown {
		if p != nil {
			p.present = present
		}
	}
	for _, first := range []bool{true, false} {
		for _, p := range a.ranking.shared {
			if len(a.choices) < n && (p.present == present) == first && a.eligible(p) {
				a.addChoice(p, rankShown)
			}
		}
	}
}

func (a *assignment) chooseArrived(all bool) {
	for _, p := range a.ranking.arrived {
		if len(a.choices) >= len(a.slots) {
			return
		}
		if (all || p.muted) && a.eligible(p) {
			a.addChoice(p, rankMuted)
		}
	}
}

// chooseSpeakers adds up to n publications: first those that have a slot already, then others in the order of the ranking.
func (a *assignment) chooseSpeakers(n int) {
	kept, present := a.kept[:0], a.mark()
	for _, p := range a.shown {
		if p != nil && p.contends() && p.present != present {
			p.present = present
			kept = append(kept, p)
		}
	}
	others := a.ranking.spoken
	next := func() *publication {
		for len(others) > 0 && (others[0].present == present || !a.eligible(others[0])) {
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
	// A publication that is speaking replaces one that has a place and is not speaking, from the last place on.
	for i := len(kept) - 1; i >= 0; i-- {
		p := next()
		if p == nil || kept[i].speaking || !p.speaking {
			break
		}
		kept[i], others = p, others[1:]
	}
	for _, p := range kept {
		a.addChoice(p, rankShown)
	}
}

func (a *assignment) chooseHeldPlaces() {
	for i, s := range a.slots {
		key := s.entry.key()
		if a.shown[i] == nil && key.peer != "" && a.heldChoice(key) == nil && a.expectedBack(key) {
			a.choices = append(a.choices, slotChoice{key: key, rank: rankHeld})
		}
	}
}

// expectedBack reports whether a publisher who is gone is expected back.
func (a *assignment) expectedBack(key trackKey) bool {
	return key.peer != a.sub.peer && a.sub.holds[key].After(a.now)
}

func (a *assignment) heldChoice(key trackKey) *slotChoice {
	for i := range a.choices {
		if c := &a.choices[i]; c.pub == nil && c.key == key {
			return c
		}
	}
	return nil
}

func (a *assignment) addChoice(p *publication, rank int) {
	if p.chosen != a.seen {
		p.chosen = a.seen
		a.choices = append(a.choices, slotChoice{key: p.key, pub: p, rank: rank})
	}
}

// fillSlots puts the choices into the slots. A choice that has a slot already keeps that slot.
func (a *assignment) fillSlots() {
	a.choices = a.choices[:min(len(a.choices), len(a.slots))]
	mark := a.mark()
	for i := range a.choices {
		if p := a.choices[i].pub; p != nil {
			p.chosen, p.choice = mark, i
		}
	}
	// Slots whose publication was not chosen are emptied before any choice is placed.
	for i, s := range a.slots {
		var c *slotChoice
		if p := a.shown[i]; p == nil {
			c = a.heldChoice(s.entry.key())
		} else if p.chosen == mark {
			c = &a.choices[p.choice]
		}
		switch {
		case c != nil && !c.placed:
			c.placed = true
		case s.entry.Peer != "":
			a.put(s, trackKey{}, nil)
		}
	}
	// All choices try the preferred slots first, so that no choice takes the slot that fits another one better.
	for _, fit := range []func(*Slot, trackKey) bool{besideSound, spare, anywhere} {
		for i := range a.choices {
			c := &a.choices[i]
			if c.placed {
				continue
			}
			at := slices.IndexFunc(a.slots, func(s *Slot) bool { return s.entry.Peer == "" && fit(s, c.key) })
			if at >= 0 {
				a.put(a.slots[at], c.key, c.pub)
				c.placed = true
			}
		}
	}
}

func besideSound(s *Slot, key trackKey) bool {
	return key.source.Kind() == KindVideo && s.beside != nil && s.beside.entry.key() == key.soundOf()
}

func spare(s *Slot, key trackKey) bool { return key.source == SourceScreen && s.beside == nil }

func anywhere(*Slot, trackKey) bool { return true }

func (a *assignment) put(s *Slot, key trackKey, p *publication) {
	s.entry.Peer, s.entry.Source, s.entry.Paused = key.peer, key.source, false
	s.source = p
	if !s.moved {
		a.moved = append(a.moved, s)
	}
	s.moved, a.sub.moved = true, true
}

// moveSoundsBesidePictures swaps sound into the slot beside its owner's picture, where nobody hears the move.
func (a *assignment) moveSoundsBesidePictures(sub *subscriber) {
	a.sub = sub
	sub.apart = false
	slots := sub.sounds.slots
	for i, left := 0, len(slots); i < len(slots) && left > 0; {
		s := slots[i]
		to := sub.slotBesidePicture(s.entry)
		switch {
		case to == nil || to == s:
			i++
		case a.soundMayMove(s) && a.soundMayMove(to):
			here, there := a.members.shown(s), a.members.shown(to)
			key := s.entry.key()
			a.put(s, to.entry.key(), there)
			a.put(to, key, here)
			// The sound that stood there came here instead, and is looked at next.
			left--
		default:
			sub.apart = true
			i++
		}
	}
}

func (a *assignment) soundMayMove(s *Slot) bool {
	v := a.speakers.voices[s.entry.Peer]
	return s.moved || s.entry.Source != SourceScreenAudio && (v == nil || !v.speaking)
}
