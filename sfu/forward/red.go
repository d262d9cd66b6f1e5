package forward

import "time"

// A slot gets redundancy for redundantFor after lossyPackets NACKs within lossyWithin.
const (
	lossyPackets = 3
	lossyWithin  = 6 * time.Second
	redundantFor = 20 * time.Second
)

type losses struct {
	asked [lossyPackets]time.Time
	next  int
	until time.Time // lossy until then
}

func (l *losses) note(now time.Time) {
	oldest := l.asked[l.next]
	l.asked[l.next] = now
	l.next = (l.next + 1) % lossyPackets
	if !oldest.IsZero() && now.Sub(oldest) < lossyWithin {
		l.until = now.Add(redundantFor)
	}
}
