package sfu

import (
	"time"

	"github.com/holdfast-rtc/holdfast/control"
)

// How long a room waits for those who come with it in a live move.
const settleWithin = 8 * time.Second

type arrival int

const (
	nobodyArrived arrival = iota // no live move, or a new one
	someArrived
	settled
)

func (r *room) arrive(p *peer) {
	p.arrived = true
	switch r.arrival {
	case nobodyArrived:
		r.arrival = someArrived
		r.after(max(settleWithin-time.Since(r.opened), 0), r.settle)
	case someArrived:
	case settled:
		r.send(p, settledEvent())
		return
	}
	r.settleIfAll()
}

func (r *room) settleIfAll() {
	if r.arrival != someArrived {
		return
	}
	for _, p := range r.peers {
		if p.came && !p.arrived {
			return
		}
	}
	r.settle()
}

func (r *room) settle() {
	if r.arrival == settled {
		return
	}
	r.arrival = settled
	for _, p := range r.peers {
		r.send(p, settledEvent())
	}
}

func settledEvent() *control.PeerEvent {
	return &control.PeerEvent{Event: &control.PeerEvent_Settled{Settled: &control.Settled{}}}
}
