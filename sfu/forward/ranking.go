package forward

import (
	"cmp"
	"slices"
	"time"
)

type ranking struct {
	arrived  []*publication // with layers, by arrival
	shared   []*publication // not muted
	spoken   []*publication // contenders by speaking, best first
	speaking int            // in spoken
}

// Muted pictures need no place.
func (p *publication) contends() bool {
	return !p.key.source.shared() && (p.kind == KindAudio || !p.muted)
}

// Speakers, then the unmuted, then who spoke last.
func comparePlaces(a, b *publication) int {
	return cmp.Or(
		-compareBool(a.speaking, b.speaking),
		compareBool(a.muted, b.muted),
		-a.lastSpoke.Compare(b.lastSpoke),
	)
}

func (r *Room) rank() {
	for _, k := range []*ranking{&r.sounds, &r.pictures} {
		k.arrived, k.shared, k.spoken, k.speaking = k.arrived[:0], k.shared[:0], k.spoken[:0], 0
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
		k.shared = append(k.shared, p)
	}
}

func (r *Room) ranking(kind Kind) *ranking {
	if kind == KindAudio {
		return &r.sounds
	}
	return &r.pictures
}

func (r *Room) mark() uint64 {
	r.lastMark++
	return r.lastMark
}

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
