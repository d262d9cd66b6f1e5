package forward

import (
	"slices"
	"strings"
	"time"
)

const (
	comparedPerRound = 8
	maxLacks         = 64
)

// codecComparison finds pictures whose codec a subscriber lacks. Each round compares a few, so that a large room costs no more.
type codecComparison struct {
	next   int
	lacked []*publication
}

// compareCodecs tells of pictures whose codec a subscriber lacks, because their publisher may have another codec.
func (r *Room) compareCodecs(now time.Time) {
	list := r.assignment.pictures.arrived
	for range min(comparedPerRound, len(list)) {
		r.codecs.next++
		p := list[r.codecs.next%len(list)]
		lacking := r.whoLacks(p)
		p.lacked = lacking != nil
		if p.lacked && r.cfg.OnStarved != nil && now.Sub(p.lackTold) >= starvedEvery {
			p.lackTold = now
			r.cfg.OnStarved(Starved{Subscriber: lacking.peer, Publisher: p.key.peer, Source: p.key.source, Heard: true, LacksCodec: true})
		}
	}
	r.tellLacks()
}

func (r *Room) whoLacks(p *publication) *subscriber {
	for _, sub := range r.members.subscribers {
		if sub.doesLack(p) {
			return sub
		}
	}
	return nil
}

func (r *Room) tellLacks() {
	r.codecs.lacked = r.codecs.lacked[:0]
	for _, p := range r.assignment.pictures.arrived {
		if p.lacked {
			r.codecs.lacked = append(r.codecs.lacked, p)
		}
	}
	for _, sub := range r.members.subscribers {
		var lacks []Lack
		for _, p := range r.codecs.lacked {
			if sub.doesLack(p) && len(lacks) < maxLacks {
				lacks = append(lacks, Lack{p.key.peer, p.key.source, strings.TrimPrefix(p.layers[0].cfg.Codec.MimeType, "video/")})
			}
		}
		if slices.Equal(lacks, sub.lacks) {
			continue
		}
		sub.lacks = lacks
		r.shared.storeLacks(sub.peer, lacks)
		if r.cfg.OnSlots != nil {
			r.cfg.OnSlots(sub.peer)
		}
	}
}
