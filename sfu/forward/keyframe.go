package forward

import "time"

// keyframeRequests coalesces the requests of many viewers for a keyframe of one
// layer. Chromium answers at most one request in 300 ms and forgets the others,
// so one that comes too early is kept and made when the interval is over.
type keyframeRequests struct {
	interval time.Duration
	last     time.Time
	pending  bool
	sent     uint64

	unanswered int // requests since the last keyframe
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

// due reports whether the request that was kept is to be sent now.
func (k *keyframeRequests) due(now time.Time) bool {
	return k.pending && k.request(now)
}

// arrived notes that a keyframe began, which is what was asked for.
func (k *keyframeRequests) arrived() { k.pending, k.unanswered = false, 0 }

// patience is how long an answer is waited for: 400 ms, and after five and ten requests without one twice and four
// times as long.
func (k *keyframeRequests) patience() time.Duration {
	const retry = 400 * time.Millisecond
	return retry << min(k.unanswered/5, 2)
}
