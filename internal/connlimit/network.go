package connlimit

import (
	"hash/maphash"
	"net"
	"net/netip"
	"sync"

	"golang.org/x/time/rate"
)

// networkBuckets is more than the addresses that an honest node hears at one moment, so that two seldom share a bucket.
const networkBuckets = 4096

// NetworkLimiter bounds what each network does in a second, in fixed memory. Its keys may be forged: networks share a
// bucket by a hash that strangers do not know, so that no number of forged addresses makes another one free.
type NetworkLimiter struct {
	perSecond rate.Limit
	burst     int
	seed      maphash.Seed

	mu      sync.Mutex
	buckets [networkBuckets]*rate.Limiter
}

// NewNetworkLimiter allows each network this rate and this burst.
func NewNetworkLimiter(perSecond float64, burst int) *NetworkLimiter {
	return &NetworkLimiter{perSecond: rate.Limit(perSecond), burst: burst, seed: maphash.MakeSeed()}
}

// Allow is false if the network of the address has used up its share.
func (l *NetworkLimiter) Allow(from net.Addr) bool { return l.bucket(Network(ipOf(from))).Allow() }

func (l *NetworkLimiter) bucket(network netip.Prefix) *rate.Limiter {
	i := maphash.Comparable(l.seed, network) % networkBuckets
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.buckets[i] == nil {
		l.buckets[i] = rate.NewLimiter(l.perSecond, l.burst)
	}
	return l.buckets[i]
}
