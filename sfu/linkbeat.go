package sfu

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
)

const (
	// Both nodes of a link say something at least so often.
	linkBeat = 250 * time.Millisecond
	// A node that says nothing for so many beats is frozen or cut off: the link ends, and is made anew.
	linkSilentBeats = 4
)

// heartbeat notices that the other node of a link is silent. It counts beats of its own and no time, so that a node that was frozen itself
// does not blame the other one.
type heartbeat struct {
	heard atomic.Bool
	// beats says that the other node sends beats. An older one is not watched. It outlives the link.
	beats *atomic.Bool
}

// note is called for each message of the other node.
func (h *heartbeat) note(message *control.LinkMessage) {
	h.heard.Store(true)
	if message.GetMessage() == nil {
		h.beats.Store(true)
	}
}

// run sends beats, which are messages that say nothing, and calls silent once the other node is.
func (h *heartbeat) run(ctx context.Context, beat, silent func()) {
	ticker := time.NewTicker(linkBeat)
	defer ticker.Stop()
	missed := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		beat()
		if missed++; h.heard.Swap(false) || !h.beats.Load() {
			missed = 0
		}
		if missed >= linkSilentBeats {
			silent()
			return
		}
	}
}
