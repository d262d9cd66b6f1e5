package forward

import (
	"slices"
	"time"
)

// Pictures wait here, not in the path's queue, where they delay sound.
const (
	// So that a low guess shows and keyframes end.
	paceFactor = 1.5
	paceTick   = 5 * time.Millisecond
	paceBurst  = 2400 // bytes: two packets
	// Past these bounds packets leave at once.
	pacePackets = 512
	paceWait    = 400 * time.Millisecond
)

type pacing struct {
	subs  []*subscriber
	timer *time.Timer
}

func newPacing() pacing {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return pacing{timer: timer}
}

type paced struct {
	slot   *Slot
	packet *Packet
	since  time.Time
}

type pacer struct {
	queue []paced
	bytes float64 // may leave now; below 0 after a longer packet
	at    time.Time
}

func (s *Slot) pass(p *Packet) {
	if s.sub.budget == 0 && len(s.sub.pace.queue) == 0 {
		s.forward(p)
		return
	}
	q := &s.sub.pace
	if len(q.queue) == 0 {
		h := &s.room.pacing
		h.subs = append(h.subs, s.sub)
		if len(h.subs) == 1 {
			h.timer.Reset(0)
		}
	}
	p.hold()
	q.queue = append(q.queue, paced{slot: s, packet: p, since: time.Now()})
}

func (s *Slot) charge(bytes int) {
	if s.sub.budget != 0 && s.cfg.Kind == KindVideo {
		s.sub.pace.bytes -= float64(bytes)
	}
}

func (r *Room) releasePaced(now time.Time) {
	h := &r.pacing
	h.timer.Reset(paceTick) // first: a packet may panic
	for _, sub := range h.subs {
		r.releaseFor(sub, now)
	}
	h.subs = slices.DeleteFunc(h.subs, func(sub *subscriber) bool { return len(sub.pace.queue) == 0 })
	if len(h.subs) == 0 {
		h.timer.Stop()
	}
}

func (r *Room) releaseFor(sub *subscriber, now time.Time) {
	q := &sub.pace
	perSecond := paceFactor * float64(sub.budget) / 8
	q.bytes = min(q.bytes+perSecond*min(now.Sub(q.at), time.Second).Seconds(), max(perSecond*paceTick.Seconds(), paceBurst))
	q.at = now
	sent := 0
	defer func() {
		for _, e := range q.queue[:sent] {
			e.packet.Release()
		}
		n := copy(q.queue, q.queue[sent:])
		clear(q.queue[n:])
		q.queue = q.queue[:n]
	}()
	for _, e := range q.queue {
		late := now.Sub(e.since) > paceWait || len(q.queue)-sent > pacePackets
		if q.bytes < 0 && sub.budget != 0 && !late {
			return
		}
		sent++
		r.handling = e.packet.layer
		e.slot.forward(e.packet)
	}
}

func (sub *subscriber) dropPaced() {
	for _, e := range sub.pace.queue {
		e.packet.Release()
	}
	sub.pace.queue = nil
}
