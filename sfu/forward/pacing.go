package forward

import (
	"time"
)

// Pictures wait here, not in the path's queue, where they delay sound.
const (
	// Packets leave faster than the budget, so that the path shows whether the budget is too low, and keyframes end soon.
	paceFactor = 1.5
	paceTick   = 5 * time.Millisecond
	// paceBurst is two packets, in bytes.
	paceBurst = 2400
	// Packets leave at once if more than pacePackets wait, or one waits longer than paceWait.
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
	// bytes may leave now. It is below 0 after a packet that was longer than what could leave.
	bytes float64
	at    time.Time
}
