package forward

import (
	"cmp"
	"slices"
	"time"
)

type ranking struct {
	// arrived are all that have layers, in the order of arrival.
	arrived []*publication
	// shared are screens and their sound, without the muted.
	shared []*publication
	// spoken are those that compete for slots by speaking, best first.
	spoken []*publication
	// speaking is how many of spoken speak now.
	speaking int
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

// rankPublications makes the orders from which every subscriber is served.
func (a *assignment) rankPublications() {
	for _, k := range []*ranking{&a.sounds, &a.pictures} {
		k.arrived, k.shared, k.spoken, k.speaking = k.arrived[:0], k.shared[:0], k.spoken[:0], 0
	}
	for i, p := range a.members.publications {
		p.arrival = i
		if len(p.layers) == 0 {
			continue
		}
		p.speaking, p.lastSpoke = false, time.Time{}
		if v := a.speakers.voices[p.key.peer]; v != nil {
			p.speaking, p.lastSpoke = v.speaking, v.lastSpoke
		}
		a.rankingOf(p.kind).add(p)
	}
	for _, k := range []*ranking{&a.sounds, &a.pictures} {
		slices.SortFunc(k.spoken, func(a, b *publication) int {
			return cmp.Or(comparePlaces(a, b), cmp.Compare(a.arrival, b.arrival))
		})
	}
}

func (a *assignment) rankingOf(kind Kind) *ranking {
	if kind == KindAudio {
		return &a.sounds
	}
	return &a.pictures
}

func (a *assignment) mark() uint64 {
	a.lastMark++
	return a.lastMark
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
