package forward

import (
	"time"
)

// keyframeRequests spaces the requests for keyframes of one layer.
type keyframeRequests struct {
	interval time.Duration
	last     time.Time
	pending  bool
	sent     uint64

	unanswered int
}

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

func (k *keyframeRequests) due(now time.Time) bool {
	return k.pending && k.request(now)
}

func (k *keyframeRequests) answered() { k.pending, k.unanswered = false, 0 }

// retryAfter doubles after five and after ten unanswered requests.
func (k *keyframeRequests) retryAfter() time.Duration {
	const retry = 400 * time.Millisecond
	return retry << min(k.unanswered/5, 2)
}

// nothingOutstanding reports whether the next request makes the publisher send another keyframe.
func (k *keyframeRequests) nothingOutstanding() bool { return k.unanswered == 0 && !k.pending }
