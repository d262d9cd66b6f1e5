package forward

// A browser plays a MediaStream's sound and picture in step.

func (key trackKey) soundOf() trackKey {
	if key.source == SourceScreen {
		return trackKey{peer: key.peer, source: SourceScreenAudio}
	}
	return trackKey{peer: key.peer, source: SourceMicrophone}
}

func besideSound(s *Slot, key trackKey) bool {
	return key.source.Kind() == KindVideo && s.beside != nil && s.beside.entry.key() == key.soundOf()
}

func spare(s *Slot, key trackKey) bool { return key.source == SourceScreen && s.beside == nil }

func anywhere(*Slot, trackKey) bool { return true }

func (sub *subscriber) join(s *Slot) {
	for _, other := range sub.slots {
		if s.cfg.Stream != "" && other.cfg.Stream == s.cfg.Stream && other.cfg.Kind != s.cfg.Kind && other.beside == nil {
			s.beside, other.beside = other, s
			return
		}
	}
}

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

func (sub *subscriber) heardBeside(e Entry) *Slot {
	if e.Peer == "" {
		return nil
	}
	for _, s := range sub.pictures.slots {
		if s.entry.Peer == e.Peer && s.entry.key().soundOf() == e.key() {
			return s.beside
		}
	}
	return nil
}

func (r *Room) rests(s *Slot) bool {
	v := r.speakers.voices[s.entry.Peer]
	return s.moved || s.entry.Source != SourceScreenAudio && (v == nil || !v.speaking)
}
