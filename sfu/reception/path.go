package reception

import (
	"slices"
	"time"
)

const (
	// For reordering; less by a part of waitFall with each repair.
	leastWait = 10 * time.Millisecond
	mostWait  = 40 * time.Millisecond
	waitFall  = 64

	startSpacing = 100 * time.Millisecond
	leastSpacing = 20 * time.Millisecond
	mostSpacing  = time.Second
	leastMargin  = 10 * time.Millisecond // over the round trip, or a quarter of that
)

// path learns the median time from the first NACK to the repair: from the last one, long round trips would seem short.
type path struct {
	wait    time.Duration
	spacing time.Duration

	measurements [15]time.Duration
	count        int
	lastAsked    time.Duration // of a request
}

func newPath() path {
	return path{wait: leastWait, spacing: startSpacing, lastAsked: -1}
}

func (p *path) repaired(asked, at time.Duration) {
	p.wait -= (p.wait - leastWait) / waitFall
	if asked != p.lastAsked {
		p.lastAsked = asked
		p.measured(at - asked)
	}
}

// reordered raises the wait before a NACK to the delay of a reordered packet. A packet later than mostWait counts as a retransmission.
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
