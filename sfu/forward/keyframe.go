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
}

// request reports whether to send one now.
func (k *keyframeRequests) request(now time.Time) bool {
	if !k.last.IsZero() && now.Sub(k.last) < k.interval {
		k.pending = true
		return false
	}
	k.last, k.pending = now, false
	k.sent++
	return true
}

// due reports whether the request that was kept is to be sent now.
func (k *keyframeRequests) due(now time.Time) bool {
	return k.pending && k.request(now)
}

// arrived notes that a keyframe began, which is what was asked for.
func (k *keyframeRequests) arrived() { k.pending = false }
