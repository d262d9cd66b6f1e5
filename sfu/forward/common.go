package forward

import (
	"slices"
	"strings"
	"time"
)

const (
	lacksPerLook = 8
	maxLacks     = 64
)

// Lack is a picture whose codec a subscriber lacks.
type Lack struct {
	Peer   PeerID
	Source Source
	Codec  string // "H264"
}

// Lacks returns what OnSlots last told of. Do not change it.
func (r *Room) Lacks(peer PeerID) []Lack {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lacks[peer]
}

// The publisher of a picture that somebody lacks may have another codec.
func (r *Room) compareCodecs(now time.Time) {
	list := r.pictures.arrived
	for range min(lacksPerLook, len(list)) {
		r.compared++
		p := list[r.compared%len(list)]
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
	for _, sub := range r.subscribers {
		if sub.doesLack(p) {
			return sub
		}
	}
	return nil
}

func (sub *subscriber) doesLack(p *publication) bool {
	slots := sub.pictures.slots
	return !p.muted && len(p.layers) > 0 && sub.peer != p.key.peer && len(slots) > 0 && slots[0].ready && !slots[0].takes(p.layers[0])
}

func (r *Room) tellLacks() {
	r.lacked = r.lacked[:0]
	for _, p := range r.pictures.arrived {
		if p.lacked {
			r.lacked = append(r.lacked, p)
		}
	}
	for _, sub := range r.subscribers {
		var lacks []Lack
		for _, p := range r.lacked {
			if sub.doesLack(p) && len(lacks) < maxLacks {
				lacks = append(lacks, Lack{p.key.peer, p.key.source, strings.TrimPrefix(p.layers[0].cfg.Codec.MimeType, "video/")})
			}
		}
		if slices.Equal(lacks, sub.lacks) {
			continue
		}
		sub.lacks = lacks
		r.mu.Lock()
		r.lacks[sub.peer] = lacks
		r.mu.Unlock()
		if r.cfg.OnSlots != nil {
			r.cfg.OnSlots(sub.peer)
		}
	}
}
