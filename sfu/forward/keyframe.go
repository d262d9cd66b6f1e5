package forward

import (
	"maps"
	"time"
)

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

func (k *keyframeRequests) arrived() { k.pending, k.unanswered = false, 0 }

// patience doubles after five and after ten unanswered requests.
func (k *keyframeRequests) patience() time.Duration {
	const retry = 400 * time.Millisecond
	return retry << min(k.unanswered/5, 2)
}

// settled reports whether the next request makes the publisher send another keyframe.
func (k *keyframeRequests) settled() bool { return k.unanswered == 0 && !k.pending }

// Everybody gets the keyframes that one viewer asks for, so a viewer has so many of a picture, and another one each keyframeEvery.
const (
	keyframeBurst = 6
	keyframeEvery = 3 * time.Second
	keyframeKinds = 256 // pictures of which a viewer's requests are counted, before those counted long ago are forgotten
)

type keyframeBudget struct {
	spent time.Duration // keyframeEvery for each
	at    time.Time
}

func (b *keyframeBudget) left(now time.Time) time.Duration {
	return max(b.spent-now.Sub(b.at), 0)
}

// mayAsk takes one keyframe off the viewer's budget of a picture. Only the request that makes the publisher send a keyframe counts, so a
// publisher who does not answer is asked as often as ever.
func (sub *subscriber) mayAsk(key trackKey, now time.Time) bool {
	b, known := sub.asks[key]
	if !known && len(sub.asks) >= keyframeKinds {
		maps.DeleteFunc(sub.asks, func(_ trackKey, b keyframeBudget) bool { return b.left(now) == 0 })
	}
	spent := b.left(now) + keyframeEvery
	if spent > keyframeBurst*keyframeEvery {
		return false
	}
	sub.asks[key] = keyframeBudget{spent, now}
	return true
}
