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

func (h *holding) remove(l *Layer) {
	for i, other := range h.layers {
		if other == l {
			h.layers = append(h.layers[:i], h.layers[i+1:]...)
			return
		}
	}
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
