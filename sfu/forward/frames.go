package forward

import (
	"time"
)

const (
	// frameWait is how long packets wait for the last packet of their frame.
	frameWait = 3 * time.Millisecond
	// So many packets do not wait any longer: a keyframe of a large screen has hundreds.
	framePackets = 32
	// equalBytes is the most padding of a packet.
	equalBytes = 32
)

type frameGatherer struct {
	// layers are those with an unfinished frame, the longest wait first.
	layers []*Layer
	timer  *time.Timer
}

func newFrameGatherer() frameGatherer {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return frameGatherer{timer: timer}
}

func (h *frameGatherer) remove(l *Layer) {
	for i, other := range h.layers {
		if other == l {
			h.layers = append(h.layers[:i], h.layers[i+1:]...)
			return
		}
	}
}
