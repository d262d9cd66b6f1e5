package forward

import "time"

const (
	starvedAfter = 2 * time.Second
	starvedEvery = 5 * time.Second
	// So long a layer without a keyframe is passed over.
	shunned = 10 * time.Second
)

// Starved is a ready slot without a picture, or a subscriber that can have none.
type Starved struct {
	Subscriber PeerID
	Mid        string
	Publisher  PeerID
	Source     Source
	Heard      bool // packets come, but no keyframe
	LacksCodec bool // not negotiated; Mid is empty
}

type starvation struct {
	since, told time.Time
}

func (r *Room) feed(now time.Time) {
	for _, sub := range r.subscribers {
		for _, s := range sub.slots {
			if !r.starves(sub, s) {
				s.starvation = starvation{}
				continue
			}
			if s.starvation.since.IsZero() {
				s.starvation.since = now
			}
			if now.Sub(s.starvation.since) >= starvedAfter && now.Sub(s.starvation.told) >= starvedEvery {
				r.starved(sub, s, now)
			}
		}
	}
}

func (r *Room) starves(sub *subscriber, s *Slot) bool {
	if s.cfg.Kind != KindVideo || !s.ready || s.entry.Peer == "" || s.paused || s.current != nil {
		return false
	}
	p := r.shown(s)
	return !sub.wanted(s.entry).hidden && (p == nil || !p.muted)
}

func (r *Room) starved(sub *subscriber, s *Slot, now time.Time) {
	told := Starved{Subscriber: sub.peer, Mid: s.cfg.Mid, Publisher: s.entry.Peer, Source: s.entry.Source}
	if s.target != nil && s.target.alive(now) {
		told.Heard = true
		s.target.shunnedUntil = now.Add(shunned)
		r.layersChanged = true
	}
	if s.starvation.told.IsZero() {
		r.log.Warn("a slot has no picture", "subscriber", string(told.Subscriber), "mid", told.Mid, "publisher", string(told.Publisher),
			"source", string(told.Source), "waits_for", r.waits(sub, s, now))
	}
	s.starvation.told = now
	if r.cfg.OnStarved != nil {
		r.cfg.OnStarved(told)
	}
}

func (l *Layer) usable(now time.Time) bool { return l.alive(now) && !l.shunnedUntil.After(now) }
