package forward

import (
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/panics"
)

// A panic costs only the peer whose packet or slot was handled.

func (r *Room) survive() {
	caught := panics.Of(recover())
	if caught == nil {
		return
	}
	l := r.handling
	r.cfg.Panics.Report(r.log, caught, "a packet broke forwarding: its track is dropped",
		"publisher", string(l.cfg.Peer), "source", string(l.cfg.Source), "rid", l.cfg.RID)
	r.dropLayer(l)
	r.broken(l.cfg.Peer)
}

func (r *Room) surviveFor(sub *subscriber) {
	caught := panics.Of(recover())
	if caught == nil {
		return
	}
	r.cfg.Panics.Report(r.log, caught, "a subscriber's slots broke forwarding: they are dropped", "peer", string(sub.peer))
	for _, s := range slices.Clone(sub.slots) {
		r.dropSlot(s)
	}
	r.broken(sub.peer)
}

func (r *Room) surviveTask() {
	if caught := panics.Of(recover()); caught != nil {
		r.cfg.Panics.Report(r.log, caught, "a task broke forwarding")
	}
}

func (r *Room) broken(peer PeerID) {
	if r.cfg.OnBroken != nil {
		r.cfg.OnBroken(peer)
	}
}

func (r *Room) do(task func()) {
	defer r.surviveTask()
	task()
}

func (r *Room) tickLayer(l *Layer, now time.Time) {
	r.handling = l
	defer r.survive()
	l.tick(now)
}

func (r *Room) tickSubscriber(sub *subscriber, now time.Time) {
	defer r.surviveFor(sub)
	sub.sendReports(now)
	sub.probe()
}
