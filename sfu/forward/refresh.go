package forward

import (
	"slices"
	"time"
)

const (
	// Clients ask once a second.
	refreshEvery = 500 * time.Millisecond
	// A second one so soon shows that a keyframe did not help.
	refreshAgain = 3 * time.Second
)

// Refresh is for slots in which a subscriber sees nothing. It asks for a keyframe; a second one soon begins the slot
// anew. A slot is refreshed once in refreshEvery at most.
func (r *Room) Refresh(peer PeerID, mids []string) {
	mids = slices.Clone(mids)
	r.post(func() {
		sub := r.subscribers[peer]
		if sub == nil {
			return
		}
		now := time.Now()
		for _, s := range sub.slots {
			if slices.Contains(mids, s.cfg.Mid) {
				s.refresh(now)
			}
		}
		sub.changed = true // reassign its slots
	})
}

func (s *Slot) refresh(now time.Time) {
	since := now.Sub(s.refreshed)
	again := !s.refreshed.IsZero() && since < refreshAgain
	if again && since < refreshEvery {
		return
	}
	s.refreshed = now
	switch {
	case !s.ready || s.target == nil || s.cfg.Kind != KindVideo:
	case again:
		s.stop()
		s.start(now)
	default:
		s.target.requestKeyframe(now)
	}
}
