package failover

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/holdfast-rtc/holdfast/pin"
)

// maxBuckets: full buckets hold no state and go first.
const maxBuckets = 256

// pacer spreads the clients sent to one node. Each signaling node takes an equal share. A room is told when its first
// burst fits; the next room waits for the rest.
type pacer struct {
	perSecond float64
	burst     int

	mu      sync.Mutex // guards buckets
	buckets map[pin.BootID]*rate.Limiter
}

func newPacer(perSecond float64, burst int) *pacer {
	return &pacer{perSecond: perSecond, burst: burst, buckets: map[pin.BootID]*rate.Limiter{}}
}

// reserve returns the wait for the first burst.
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

// prune needs mu.
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
