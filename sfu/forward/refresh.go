package forward

import (
	"slices"
	"time"
)

const (
	// refreshEvery bounds how often one slot may be refreshed; a client says it once a second.
	refreshEvery = 500 * time.Millisecond
	// refreshAgain is how soon a second refresh shows that a keyframe did not help.
	refreshAgain = 3 * time.Second
)

// Refresh acts on a subscriber's word that these slots should show something and show nothing.
// The publisher is asked for a keyframe; a slot that is refreshed a second time begins anew,
// as if its transport had just come up. Of one slot, one refresh in 500 ms counts.
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
		sub.changed = true // What it should show is worked out again.
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
