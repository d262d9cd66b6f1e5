package forward

import (
	"slices"
	"time"
)

// On a narrow path pictures wait here rather than in the path's queue, so that sound, which never waits, comes behind a few packets of
// them at most. Without it a keyframe stands before the sound for as long as the path takes for it, or pushes it out of the queue.
const (
	// paceFactor is how much faster pictures may leave than the path is known to carry: what was guessed too low shows, and a keyframe ends.
	paceFactor = 1.5
	paceTick   = 5 * time.Millisecond
	paceBurst  = 2400 // bytes at once, two packets: sound waits for no more of them
	// pacePackets and paceWait bound what waits; what is too much leaves at once.
	pacePackets = 512
	paceWait    = 400 * time.Millisecond
)

// pacing are the subscribers for whom pictures wait.
type pacing struct {
	subs  []*subscriber
	timer *time.Timer
}

func newPacing() pacing {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return pacing{timer: timer}
}

// paced is a packet that waits, and for which slot.
type paced struct {
	slot   *Slot
	packet *Packet
	since  time.Time
}

// pacer is a subscriber's queue.
type pacer struct {
	queue []paced
	bytes float64 // that may leave now; below 0 after one that was longer
	at    time.Time
}

// pass forwards a packet of a picture to a slot, on a narrow path when its turn has come.
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

// charge counts what was sent of a picture.
func (s *Slot) charge(bytes int) {
	if s.sub.budget != 0 && s.cfg.Kind == KindVideo {
		s.sub.pace.bytes -= float64(bytes)
	}
}

// releasePaced forwards what may leave by now.
func (r *Room) releasePaced(now time.Time) {
	h := &r.pacing
	h.timer.Reset(paceTick) // first, in case that a packet breaks the loop
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

// dropPaced forgets what waits for a subscriber.
func (sub *subscriber) dropPaced() {
	for _, e := range sub.pace.queue {
		e.packet.Release()
	}
	sub.pace.queue = nil
}
