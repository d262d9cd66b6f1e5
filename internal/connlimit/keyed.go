package connlimit

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// KeyedLimiter bounds a rate for each key. Strangers must not be able to choose keys.
type KeyedLimiter struct {
	perSecond rate.Limit
	burst     int
	most      int

	mu   sync.Mutex
	keys map[string]*rate.Limiter
}

// NewKeyedLimiter limits each key. Beyond most keys, further keys are not limited.
func NewKeyedLimiter(perSecond float64, burst, most int) *KeyedLimiter {
	return &KeyedLimiter{perSecond: rate.Limit(perSecond), burst: burst, most: most, keys: make(map[string]*rate.Limiter)}
}

// Allow reports whether the key may do it now.
func (l *KeyedLimiter) Allow(key string) bool {
	if l.perSecond == rate.Inf {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	limit, known := l.keys[key]
	if !known {
		if len(l.keys) >= l.most {
			l.forgetRested()
		}
		limit = rate.NewLimiter(l.perSecond, l.burst)
		if len(l.keys) < l.most {
			l.keys[key] = limit
		}
	}
	return limit.Allow()
}

// Return takes an Allow back.
func (l *KeyedLimiter) Return(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if limit, known := l.keys[key]; known && limit.Tokens() < float64(l.burst) {
		limit.AllowN(time.Now(), -1)
	}
}

// forgetRested forgets the keys whose limit is full again. The caller holds mu.
func (l *KeyedLimiter) forgetRested() {
	for key, limit := range l.keys {
		if limit.Tokens() >= float64(l.burst) {
			delete(l.keys, key)
		}
	}
}
