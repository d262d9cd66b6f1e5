package failover

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/holdfast-rtc/holdfast/pin"
)

// maxBuckets bounds the buckets. Full ones hold no state and are dropped first.
const maxBuckets = 256

// pacer bounds how many clients per second are sent to one node, because flooded survivors bring
// everybody back later (docs/CHAOS.md, A crowd). The rate is the cluster's; each signaling node takes
// an equal share, since none knows how many clients the others hold.
//
// A room is told as a whole. It waits until the first burst of its clients fits, and the next room
// for the rest: after 300 people at 200/s and a burst of 50, (300-50)/200 = 1.25 s.
type pacer struct {
	perSecond float64
	burst     int

	mu      sync.Mutex // guards buckets
	buckets map[pin.BootID]*rate.Limiter
}

func newPacer(perSecond float64, burst int) *pacer {
	return &pacer{perSecond: perSecond, burst: burst, buckets: map[pin.BootID]*rate.Limiter{}}
}

// reserve takes tokens for all clients and returns the wait for the first burst.
func (p *pacer) reserve(now time.Time, target pin.BootID, clients, signalingNodes int) time.Duration {
	clients, signalingNodes = max(clients, 1), max(signalingNodes, 1)
	p.mu.Lock()
	defer p.mu.Unlock()
	share, burst := rate.Limit(p.perSecond/float64(signalingNodes)), max(p.burst/signalingNodes, 1)
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

// prune drops full buckets at the limit. The caller holds mu.
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
