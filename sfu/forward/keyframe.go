package forward

import "time"

// keyframes knows where a layer's newest keyframe begins. Several of its packets look like its first: each slice of H264, and each
// spatial layer of AV1.
type keyframes struct {
	count     uint64
	first     uint32 // extended; 0: none
	timestamp uint32
	at        time.Time

	bare          bool // the last IDR picture of H264 came without parameter sets
	bareTimestamp uint32
}

// begins reports whether a switch may happen at a packet that looks like a keyframe's first. An IDR picture needs its parameter sets, which may
// have been lost or come late, unless the pictures of this publisher come without.
func (k *keyframes) begins(p *Packet) bool {
	timestamp := p.header.timestamp
	same := k.first != 0 && timestamp == k.timestamp
	switch {
	case same && p.sequence > k.first:
		return false
	case !p.picture.bare:
		k.bare = false
	case same:
		return false
	case !k.bare || timestamp == k.bareTimestamp:
		k.bare, k.bareTimestamp = true, timestamp
		return false
	}
	if same {
		k.first = p.sequence
	} else if p.sequence > k.first {
		k.first, k.timestamp, k.at = p.sequence, timestamp, p.arrived
		k.count++
	}
	return true
}

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
