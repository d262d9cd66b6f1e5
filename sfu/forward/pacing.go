package forward

import (
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
