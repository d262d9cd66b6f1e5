package forward

import (
	"time"
)

const (
	starvedAfter = 2 * time.Second
	starvedEvery = 5 * time.Second
	// shunned is how long a layer that gives no keyframe is passed over while another one lives.
	shunned = 10 * time.Second
)

type starvation struct {
	since, told time.Time
}

func (r *Room) reportStarvation(now time.Time) {
	for _, sub := range r.members.subscribers {
		for _, s := range sub.slots {
			if !r.isStarving(sub, s) {
				s.starvation = starvation{}
				continue
			}
			if s.starvation.since.IsZero() {
				s.starvation.since = now
			}
			if now.Sub(s.starvation.since) >= starvedAfter && now.Sub(s.starvation.told) >= starvedEvery {
				r.tellStarved(sub, s, now)
			}
		}
	}
}

func (r *Room) isStarving(sub *subscriber, s *Slot) bool {
	if s.cfg.Kind != KindVideo || !s.ready || s.entry.Peer == "" || s.paused || s.current != nil {
		return false
	}
	p := r.members.shown(s)
	return !sub.wishFor(s.entry).hidden && (p == nil || !p.muted)
}

func (r *Room) tellStarved(sub *subscriber, s *Slot, now time.Time) {
	told := Starved{Subscriber: sub.peer, Mid: s.cfg.Mid, Publisher: s.entry.Peer, Source: s.entry.Source}
	if s.target != nil && s.target.alive(now) {
		told.Heard = true
		s.target.shunnedUntil = now.Add(shunned)
		r.changed.layers = true
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
