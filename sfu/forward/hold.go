package forward

import "time"

const (
	// How long packets wait for their frame's last one.
	holdTime = 3 * time.Millisecond
	// A keyframe of a large screen has hundreds.
	holdPackets = 32
	// The most padding of a packet.
	equalBytes = 32
)

type holding struct {
	layers []*Layer // longest wait first
	timer  *time.Timer
}

func newHolding() holding {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return holding{timer: timer}
}

// hold takes over the reference.
func (r *Room) hold(p *Packet) {
	l := p.layer
	if l.cfg.Kind != KindVideo {
		for _, s := range l.slots {
			s.forward(p)
		}
		p.Release()
		return
	}
	l.held = append(l.held, p)
	switch {
	case p.header.Marker || len(l.held) == holdPackets:
		l.forwardHeld()
		r.holding.remove(l)
	case len(l.held) == 1:
		r.holding.layers = append(r.holding.layers, l)
		if len(r.holding.layers) == 1 {
			r.holding.timer.Reset(holdTime)
		}
	}
}

func (r *Room) letGo(now time.Time) {
	h := &r.holding
	for len(h.layers) > 0 {
		l := h.layers[0]
		if wait := holdTime - now.Sub(l.held[0].arrived); wait > 0 {
			h.timer.Reset(wait)
			return
		}
		r.handling = l
		l.forwardHeld()
		h.remove(l)
	}
}

func (h *holding) remove(l *Layer) {
	for i, other := range h.layers {
		if other == l {
			h.layers = append(h.layers[:i], h.layers[i+1:]...)
			return
		}
	}
}

func (l *Layer) forwardHeld() {
	shards := len(l.room.cfg.Batchers)
	if shards > 0 {
		equalise(l.held)
	}
	if shards > 1 && len(l.slots) >= shardSlots {
		l.room.forwardInShards(l)
	} else {
		for _, s := range l.slots {
			for _, p := range l.held {
				s.pass(p)
			}
		}
	}
	l.dropHeld()
}

// equalise pads packets (RFC 3550 section 5.1), because the kernel cuts equal lengths.
func equalise(held []*Packet) {
	longest := 0
	for _, p := range held {
		longest = max(longest, len(p.payload()))
	}
	for i, p := range held {
		missing := longest - len(p.payload())
		if missing > 0 && missing <= equalBytes && !p.empty() && i < len(held)-1 {
			p.padding = uint8(missing)
		}
	}
}

func (l *Layer) dropHeld() {
	for i, p := range l.held {
		p.Release()
		l.held[i] = nil
	}
	l.held = l.held[:0]
}
