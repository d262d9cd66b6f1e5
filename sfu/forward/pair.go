package forward

// A browser plays the first sound and the first picture of one MediaStream in step, and m-lines are given their streams once for all.
// So who is seen should be heard in the slot beside.

// besideSound: the slot is the one beside the sound of whom a camera shows.
func besideSound(s *Slot, key trackKey) bool {
	return key.source == SourceCamera && s.beside != nil && s.beside.entry.Peer == key.peer
}

// spare: a screen has no sound, so it takes a slot that has none beside it.
func spare(s *Slot, key trackKey) bool { return key.source == SourceScreen && s.beside == nil }

func anywhere(*Slot, trackKey) bool { return true }

// join finds the slot beside a new one.
func (sub *subscriber) join(s *Slot) {
	for _, other := range sub.slots {
		if s.cfg.Stream != "" && other.cfg.Stream == s.cfg.Stream && other.cfg.Kind != s.cfg.Kind && other.beside == nil {
			s.beside, other.beside = other, s
			return
		}
	}
}

// pair brings everybody's sound beside the camera, where it changes places with what is there. Nobody who speaks is moved, for that
// would be heard, unless to a slot that was given to him just now.
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
			left-- // Now look at what came here.
		default:
			sub.apart = true
			i++
		}
	}
}

// heardBeside is the audio slot beside the camera of whom an entry is of; nil for none.
func (sub *subscriber) heardBeside(e Entry) *Slot {
	if e.Source != SourceMicrophone || e.Peer == "" {
		return nil
	}
	for _, s := range sub.pictures.slots {
		if s.entry.Peer == e.Peer && s.entry.Source == SourceCamera {
			return s.beside
		}
	}
	return nil
}

// rests reports whether nobody hears it when an audio slot shows somebody else.
func (r *Room) rests(s *Slot) bool {
	v := r.speakers.voices[s.entry.Peer]
	return s.moved || v == nil || !v.speaking
}
