package forward

import "time"

// keyframeRequests merges the viewers' requests for one layer. Chromium answers one in 300 ms and forgets the others,
// so an early request waits for the end of the interval.
type keyframeRequests struct {
	interval time.Duration
	last     time.Time
	pending  bool
	sent     uint64

	unanswered int // since the last keyframe
}

// request reports whether to send one now.
func (k *keyframeRequests) request(now time.Time) bool {
	if !k.last.IsZero() && now.Sub(k.last) < k.interval {
		k.pending = true
		return false
	}
	k.last, k.pending = now, false
	k.sent++
	k.unanswered++
	return true
}

// due reports whether the waiting request is to be sent now.
func (k *keyframeRequests) due(now time.Time) bool {
	return k.pending && k.request(now)
}

func (k *keyframeRequests) arrived() { k.pending, k.unanswered = false, 0 }

// patience doubles after five and again after ten unanswered requests.
func (k *keyframeRequests) patience() time.Duration {
	const retry = 400 * time.Millisecond
	return retry << min(k.unanswered/5, 2)
}
