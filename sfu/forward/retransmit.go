package forward

import "time"

const (
	// About half of a 5 Mbit/s stream.
	retransmitsPerSecond = 250
	retransmitBurst      = 120

	// A quarter of a narrow path.
	retransmitShare     = 4
	leastRetransmits    = 10
	retransmitFullBytes = 1200

	// An earlier request cannot know of the last copy.
	resendAfter      = 100 * time.Millisecond // round trip unknown
	leastResendAfter = 30 * time.Millisecond
	mostResendAfter  = 300 * time.Millisecond
)

type retransmitBudget struct {
	tokens float64
	at     time.Time
}

// bitsPerSecond is the path's; 0: unknown.
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

func (s *Slot) retransmit(sequenceNumbers []uint16, now time.Time) {
	if s.closed || !s.ready || s.rewriter.sent == nil {
		return
	}
	if s.asked.IsZero() {
		s.asked = now.Add(-time.Hour) // so that no time is 0
	}
	at := uint32(now.Sub(s.asked).Milliseconds())
	sub := s.room.subscriber(s.cfg.Peer)
	guard := uint32(sub.resendAfter().Milliseconds())
	for _, sequence := range sequenceNumbers {
		from, ok := s.rewriter.lookup(sequence)
		if ok && from.place.again != 0 && at-from.place.again < guard {
			continue
		}
		if !ok || !s.budget.take(now, sub.budget) || !s.again(from, sequence) {
			s.room.stats.retransmitMisses.Add(1)
			continue
		}
		if from.place.again == 0 {
			s.losses.note(now)
		}
		from.place.again = at
		s.room.stats.retransmitted.Add(1)
	}
}

// Without RTX, the very same bytes: others would reuse their SRTP nonce.
func (s *Slot) again(from origin, sequence uint16) bool {
	if s.cfg.RTXSSRC == 0 || from.segment.payload.rtx == 0 {
		if s.cfg.Repeat == nil {
			return false
		}
		n, err := s.cfg.Repeat(sequence)
		return s.wrote(n, err)
	}
	layer := s.room.layers[from.segment.layer]
	if layer == nil {
		return false
	}
	p := layer.cache.get(from.sequence)
	return p != nil && s.resend(p, from, sequence)
}

func (sub *subscriber) resendAfter() time.Duration {
	if sub.roundTrip <= 0 {
		return resendAfter
	}
	return min(max(sub.roundTrip, leastResendAfter), mostResendAfter)
}
