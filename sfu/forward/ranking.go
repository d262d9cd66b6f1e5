package forward

import (
	"cmp"
	"slices"
	"time"
)

// ranking is what there is of one kind, in the orders in which it is chosen for every subscriber.
type ranking struct {
	arrived  []*publication // with layers, in order of arrival
	screens  []*publication // of these, not muted
	spoken   []*publication // of these, who contend for places by speaking, best to keep first
	speaking int            // so many of them speak
}

// contends reports whether a publication's place depends on who speaks. What is muted needs none, except for sound, and screens
// come before everybody.
func (p *publication) contends() bool {
	return p.kind == KindAudio || !p.muted && p.key.source != SourceScreen
}

// comparePlaces puts first what is better to keep: who speaks, then who is not muted, then who spoke last.
func comparePlaces(a, b *publication) int {
	return cmp.Or(
		-compareBool(a.speaking, b.speaking),
		compareBool(a.muted, b.muted),
		-a.lastSpoke.Compare(b.lastSpoke),
	)
}

// rank orders the publications anew.
func (r *Room) rank() {
	for _, k := range []*ranking{&r.sounds, &r.pictures} {
		k.arrived, k.screens, k.spoken, k.speaking = k.arrived[:0], k.screens[:0], k.spoken[:0], 0
	}
	for i, p := range r.publications {
		p.arrival = i
		if len(p.layers) == 0 {
			continue
		}
		p.speaking, p.lastSpoke = false, time.Time{}
		if v := r.speakers.voices[p.key.peer]; v != nil {
			p.speaking, p.lastSpoke = v.speaking, v.lastSpoke
		}
		r.ranking(p.kind).add(p)
	}
	for _, k := range []*ranking{&r.sounds, &r.pictures} {
		slices.SortFunc(k.spoken, func(a, b *publication) int {
			return cmp.Or(comparePlaces(a, b), cmp.Compare(a.arrival, b.arrival))
		})
	}
}

func (k *ranking) add(p *publication) {
	k.arrived = append(k.arrived, p)
	switch {
	case p.contends():
		k.spoken = append(k.spoken, p)
		if p.speaking {
			k.speaking++
		}
	case !p.muted:
		k.screens = append(k.screens, p)
	}
}

func (r *Room) ranking(kind Kind) *ranking {
	if kind == KindAudio {
		return &r.sounds
	}
	return &r.pictures
}

// mark returns a number that marks publications for one use.
func (r *Room) mark() uint64 {
	r.lastMark++
	return r.lastMark
}

// shown returns what there is of what a slot shows, nil if there is nothing.
func (r *Room) shown(s *Slot) *publication {
	if s.entry.Peer == "" {
		return nil
	}
	if p := s.source; p == nil || p.gone {
		s.source = r.sources[s.entry.key()]
	}
	return s.source
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	default:
		return -1
	}
}
