package failover

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/holdfast-rtc/holdfast/pin"
)

// maxBuckets bounds the buckets kept; past it those that are full, and so remember
// nothing, are dropped.
const maxBuckets = 256

// pacer bounds how many clients are sent to one node per second. The rate is the cluster's:
// every edge takes its share, 1/edges of it, because all of them see the same death and
// none knows how many clients the others hold.
//
// A room is told as a whole, for people in one room come back together. So it waits until
// the first burst's worth of its clients fits, and what it has beyond that is a debt, for which
// the next room waits. A room of 300 people at 200/s and a burst of 50 goes at
// once and keeps the next one back for (300-50)/200 = 1.25 s.
//
// Without it everybody is later, not sooner: of 200 people on a dead node the last one was back after 1.7 to 2.5 s with no
// pace, after 1.0 to 1.4 s with this one, and after 1.8 to 2.0 s with half of it (2 cores; docs/CHAOS.md, A crowd).
type pacer struct {
	perSecond float64
	burst     int

	mu      sync.Mutex // guards buckets
	buckets map[pin.BootID]*rate.Limiter
}

func newPacer(perSecond float64, burst int) *pacer {
	return &pacer{perSecond: perSecond, burst: burst, buckets: map[pin.BootID]*rate.Limiter{}}
}

// reserve takes the tokens and returns how long to wait for the first burst of them.
func (p *pacer) reserve(now time.Time, target pin.BootID, clients, edges int) time.Duration {
	clients, edges = max(clients, 1), max(edges, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	share, burst := rate.Limit(p.perSecond/float64(edges)), max(p.burst/edges, 1)
	bucket, ok := p.buckets[target]
	if !ok {
		p.prune(now)
		bucket = rate.NewLimiter(share, burst)
		p.buckets[target] = bucket
	}
	bucket.SetLimitAt(now, share)
	bucket.SetBurstAt(now, burst)
	wait := bucket.ReserveN(now, min(clients, burst)).DelayFrom(now)
	for debt := clients - burst; debt > 0; debt -= burst {
		bucket.ReserveN(now, min(debt, burst))
	}
	return wait
}

// prune makes room for one more bucket. The caller holds mu.
func (p *pacer) prune(now time.Time) {
	if len(p.buckets) < maxBuckets {
		return
	}
	for target, bucket := range p.buckets {
		if bucket.TokensAt(now) >= float64(bucket.Burst()) {
			delete(p.buckets, target)
		}
	}
}
