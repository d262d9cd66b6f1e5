package reception

import (
	"slices"
	"time"
)

// How long until a missing packet is asked for, and asked for again.
const (
	// leastWait is for reordering. It grows to mostWait on a path that reorders by more, and falls by a part of waitFall with
	// each repair.
	leastWait = 10 * time.Millisecond
	mostWait  = 40 * time.Millisecond
	waitFall  = 64

	startSpacing = 100 * time.Millisecond
	leastSpacing = 20 * time.Millisecond
	mostSpacing  = time.Second
	leastMargin  = 10 * time.Millisecond // of the spacing over the round trip; a quarter of that if it is more
)

// path learns the round trip between a NACK and its repair: the median of the last measurements. A repair is measured from
// the FIRST time its packet was asked for. That is right as long as most first requests succeed, and it is the only choice that
// sees a round trip longer than the spacing; measured from the last one it would seem shorter, and be asked for ever more often.
type path struct {
	wait    time.Duration // before the first request
	spacing time.Duration // between two

	measurements [15]time.Duration
	count        int
	lastAsked    time.Duration // the request that was measured last
}

func newPath() path {
	return path{wait: leastWait, spacing: startSpacing, lastAsked: -1}
}

// repaired notes the repair of a packet that was first asked for at asked. Of those that one NACK named, the first counts.
func (p *path) repaired(asked, at time.Duration) {
	p.wait -= (p.wait - leastWait) / waitFall
	if asked != p.lastAsked {
		p.lastAsked = asked
		p.measured(at - asked)
	}
}

// reordered notes an original that came so much after a later one. What is later than mostWait is a retransmission.
func (p *path) reordered(late time.Duration) {
	if late <= mostWait {
		p.wait = max(p.wait, late)
	}
}

func (p *path) measured(d time.Duration) {
	p.measurements[p.count%len(p.measurements)] = d
	p.count++
	sorted := p.measurements
	known := sorted[:min(p.count, len(sorted))]
	slices.Sort(known)
	median := known[len(known)/2]
	p.spacing = min(max(median+max(median/4, leastMargin), leastSpacing), mostSpacing)
}
