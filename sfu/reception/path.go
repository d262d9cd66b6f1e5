package reception

import (
	"slices"
	"time"
)

// When a missing packet is asked for.
const (
	// For reordering: up to mostWait on paths that reorder by more, less by a part of waitFall with each repair.
	leastWait = 10 * time.Millisecond
	mostWait  = 40 * time.Millisecond
	waitFall  = 64

	startSpacing = 100 * time.Millisecond
	leastSpacing = 20 * time.Millisecond
	mostSpacing  = time.Second
	leastMargin  = 10 * time.Millisecond // over the round trip, or a quarter of that if it is more
)

// path learns the median time from the first NACK to the repair. Counted from the last NACK, a round trip longer than
// the spacing would seem shorter, and requests would come ever more often.
type path struct {
	wait    time.Duration // before the first request
	spacing time.Duration // between requests

	measurements [15]time.Duration
	count        int
	lastAsked    time.Duration // of the last measured request
}

func newPath() path {
	return path{wait: leastWait, spacing: startSpacing, lastAsked: -1}
}

// repaired counts one repair of each NACK.
func (p *path) repaired(asked, at time.Duration) {
	p.wait -= (p.wait - leastWait) / waitFall
	if asked != p.lastAsked {
		p.lastAsked = asked
		p.measured(at - asked)
	}
}

// reordered notes a late original. One later than mostWait is a retransmission.
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
