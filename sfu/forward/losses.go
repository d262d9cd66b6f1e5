package forward

import (
	"time"
)

// A slot gets redundancy for redundantFor after lossyPackets NACKs within lossyWithin.
const (
	lossyPackets = 3
	lossyWithin  = 6 * time.Second
	redundantFor = 20 * time.Second
)

type losses struct {
	asked [lossyPackets]time.Time
	next  int
	// until is how long the path counts as lossy.
	until time.Time
}

func (l *losses) note(now time.Time) {
	oldest := l.asked[l.next]
	l.asked[l.next] = now
	l.next = (l.next + 1) % lossyPackets
	if !oldest.IsZero() && now.Sub(oldest) < lossyWithin {
		l.until = now.Add(redundantFor)
	}
}

const (
	// Retransmissions of a slot: about half of the packets of a 5 Mbit/s stream.
	retransmitsPerSecond = 250
	retransmitBurst      = 120

	// On a narrow path retransmissions have a quarter of the budget, but at least leastRetransmits a second.
	retransmitShare     = 4
	leastRetransmits    = 10
	retransmitFullBytes = 1200

	// A packet is sent again only after a round trip, because an earlier request cannot know of the last copy. resendAfter is for an unknown
	// round trip.
	resendAfter      = 100 * time.Millisecond
	leastResendAfter = 30 * time.Millisecond
	mostResendAfter  = 300 * time.Millisecond
)

type retransmitBudget struct {
	tokens float64
	at     time.Time
}

// take reports whether one more packet may be sent again. bitsPerSecond is the path's budget; 0 if it is unknown.
func (b *retransmitBudget) take(now time.Time, bitsPerSecond uint64) bool {
	rate, burst := float64(retransmitsPerSecond), float64(retransmitBurst)
	if bitsPerSecond > 0 {
		share := float64(bitsPerSecond) / (8 * retransmitFullBytes * retransmitShare)
		rate = min(max(share, leastRetransmits), rate)
		burst = min(rate, burst)
	}
	if b.at.IsZero() {
		b.tokens = burst
	} else {
		b.tokens = min(b.tokens+now.Sub(b.at).Seconds()*rate, burst)
	}
	b.at = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
