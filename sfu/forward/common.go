package forward

import "time"

// lacksPerLook bounds how many publications are compared with what everybody negotiated at one look.
const lacksPerLook = 8

// compareCodecs looks, some publications at a time, for somebody who did not negotiate the codec of a picture. Such a picture is
// not shown there; its publisher may have another codec.
func (r *Room) compareCodecs(now time.Time) {
	list := r.pictures.arrived
	for range min(lacksPerLook, len(list)) {
		r.compared++
		p := list[r.compared%len(list)]
		if p.muted || len(p.layers) == 0 || now.Sub(p.lackTold) < starvedEvery {
			continue
		}
		for _, sub := range r.subscribers {
			slots := sub.pictures.slots
			if sub.peer == p.key.peer || len(slots) == 0 || !slots[0].ready || slots[0].takes(p.layers[0]) {
				continue
			}
			p.lackTold = now
			r.cfg.OnStarved(Starved{Subscriber: sub.peer, Publisher: p.key.peer, Source: p.key.source, Heard: true, LacksCodec: true})
			break
		}
	}
}
