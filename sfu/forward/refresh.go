package forward

import (
	"slices"
	"time"
)

const (
	refreshEvery = 500 * time.Millisecond
	refreshAgain = 3 * time.Second
)

// Refresh asks for keyframes of slots that show nothing; soon again, it begins them anew.
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
		sub.changed = true
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
		s.target.requestKeyframe(s.sub, now)
	}
}
