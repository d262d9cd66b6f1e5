package forward

import "time"

const (
	// holdTime is how long the packets of a frame wait for its last one. A frame cannot be decoded before it is whole, so this costs a
	// viewer nothing; packets that leave together cost the node a third of what they cost one by one, because the kernel cuts
	// those for one viewer out of one.
	holdTime = 3 * time.Millisecond
	// holdPackets bounds how many wait: a keyframe of a large screen has hundreds.
	holdPackets = 32
	// equalBytes is how much padding a packet may get to be as long as the others of its frame. libwebrtc cuts a frame into
	// packets that differ by a byte, and by the header extensions of the first and the last.
	equalBytes = 32
)

// holding are the layers of which packets wait.
type holding struct {
	layers []*Layer    // the one that has waited longest first
	timer  *time.Timer // rings when that one has waited long enough
}

func newHolding() holding {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return holding{timer: timer}
}

// hold forwards sound at once, and a picture when its last packet is there. It takes over the packet's reference.
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
	case p.header.marker || len(l.held) == holdPackets:
		l.forwardHeld()
		r.holding.remove(l)
	case len(l.held) == 1:
		r.holding.layers = append(r.holding.layers, l)
		if len(r.holding.layers) == 1 {
			r.holding.timer.Reset(holdTime)
		}
	}
}

// letGo forwards what has waited for holdTime.
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

// forwardHeld forwards what the layer holds, one subscriber after the other.
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

// equalise pads packets to the length of the longest where little is missing: the kernel cuts packets of one length out of one
// message, of which the last may be shorter. Receivers take padding off every packet of media (RFC 3550 section 5.1).
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
