package forward

import (
	"context"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/forward/parse"
)

const (
	// tickInterval is for what viewers wait for, calmInterval for the rest. A tick wakes a sleeping process.
	tickInterval = 20 * time.Millisecond
	calmInterval = 100 * time.Millisecond
	idleInterval = 500 * time.Millisecond

	lookInterval = 250 * time.Millisecond

	burstPackets = 64
)

// Run forwards until ctx ends and returns nil.
func (r *Room) Run(ctx context.Context) error {
	interval := idleInterval
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	defer r.holding.timer.Stop()
	defer r.pacing.timer.Stop()
	defer r.release()
	for {
		if wanted := r.tickEvery(); wanted != interval {
			interval = wanted
			ticker.Reset(interval)
		}
		select {
		case <-ctx.Done():
			return nil
		case p := <-r.packets:
			r.burst(p)
		case <-r.backlog.more:
			r.behind()
		case <-r.holding.timer.C:
			r.lapse()
		case now := <-r.pacing.timer.C:
			r.paced(now)
		case task := <-r.tasks:
			r.control(task)
		case now := <-ticker.C:
			r.tick(now)
		}
	}
}

func (r *Room) tickEvery() time.Duration {
	switch {
	case len(r.layers) == 0:
		return idleInterval
	case r.viewersWait:
		return tickInterval
	default:
		return calmInterval
	}
}

func (r *Room) control(task func()) {
	defer r.surviveTask()
	r.gather(func() {
		r.do(task)
		for range len(r.tasks) {
			r.do(<-r.tasks)
		}
		r.arrange(time.Now())
	})
}

func (r *Room) gather(f func()) {
	for _, b := range r.cfg.Batchers {
		b.Begin()
		defer b.End()
	}
	f()
}

func (r *Room) burst(p *Packet) {
	defer r.survive()
	r.gather(func() {
		if len(r.backlog.queue) > 0 || time.Since(p.arrived) > behindAfter {
			r.catchUp(p)
			return
		}
		begun := p.arrived
		r.handle(p)
		for i := range min(len(r.packets), burstPackets-1) {
			if i%behindPackets == 0 && time.Since(begun) > behindAfter {
				return
			}
			r.handle(<-r.packets)
		}
	})
}

func (r *Room) behind() {
	defer r.survive()
	r.gather(func() { r.catchUp(nil) })
}

func (r *Room) lapse() {
	defer r.survive()
	r.gather(func() { r.letGo(time.Now()) })
}

func (r *Room) paced(now time.Time) {
	defer r.survive()
	r.gather(func() { r.releasePaced(now) })
}

func (r *Room) handle(p *Packet) {
	l := p.layer
	r.handling = l
	// A packet may overtake AddLayer's task; the cache keeps it.
	if l.closed || !l.receive(p) {
		p.Release()
		return
	}
	if p.header.AudioLevel != parse.NoAudioLevel && l.cfg.Source == SourceMicrophone {
		r.speakers.observe(l.cfg.Peer, p.header.AudioLevel, p.arrived)
	}
	r.hold(p)
}

func (r *Room) tick(now time.Time) {
	defer r.surviveTask()
	r.takeBudgets()
	r.viewersWait = false
	for _, l := range r.layers {
		r.tickLayer(l, now)
	}
	r.expireHolds(now)
	if list, changed := r.speakers.update(now); changed {
		r.speakersChanged = r.speakersChanged || r.scarce || r.apart
		if r.cfg.OnSpeakers != nil {
			r.cfg.OnSpeakers(list)
		}
	}
	look := now.Sub(r.layersLooked) >= lookInterval
	if look {
		for _, l := range r.layers {
			l.measure(now.Sub(r.layersLooked))
		}
		r.layersLooked = now
		r.feed(now)
		r.compareCodecs(now)
		r.layersChanged = true // layers may be silent, or back
	}
	r.gather(func() {
		if look {
			r.addUp(func() { r.arrange(now) })
		} else {
			r.arrange(now)
		}
		for _, sub := range r.subscribers {
			r.tickSubscriber(sub, now)
			r.viewersWait = r.viewersWait || sub.short > 0
		}
	})
}

func (r *Room) release() {
	close(r.done)
	for {
		select {
		case p := <-r.packets:
			p.Release()
		default:
			r.backlog.drop()
			for _, sub := range r.pacing.subs {
				sub.dropPaced()
			}
			for _, l := range r.layers {
				l.closed = true
				l.dropHeld()
				l.cache.clear()
			}
			return
		}
	}
}
