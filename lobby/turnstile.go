package lobby

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Turnstile bounds how often each of many comes in. It is for those who have
// shown who they are: a stranger could make up keys without end.
type Turnstile struct {
	perSecond rate.Limit
	burst     int
	most      int // keys remembered; past it those who have rested are forgotten

	mu   sync.Mutex // guards keys
	keys map[string]*rate.Limiter
}

// NewTurnstile lets each key in burst times at once and perSecond on average. It
// remembers most keys at once; when as many have come within the time in which one of
// them rests, it lets others through unjudged rather than shut them out.
func NewTurnstile(perSecond float64, burst, most int) *Turnstile {
	return &Turnstile{perSecond: rate.Limit(perSecond), burst: burst, most: most, keys: make(map[string]*rate.Limiter)}
}

// Pass reports whether the key may come in now.
func (t *Turnstile) Pass(key string) bool {
	if t.perSecond == rate.Inf {
		return true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	limit, known := t.keys[key]
	if !known {
		if len(t.keys) >= t.most {
			t.forgetRested()
		}
		limit = rate.NewLimiter(t.perSecond, t.burst)
		if len(t.keys) < t.most {
			t.keys[key] = limit
		}
	}
	return limit.Allow()
}

// Return takes back one Pass, which turned out to be none.
func (t *Turnstile) Return(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if limit, known := t.keys[key]; known && limit.Tokens() < float64(t.burst) {
		limit.AllowN(time.Now(), -1) // to take less than nothing is always allowed
	}
}

// forgetRested forgets the keys that could come in as often as new ones. Call it with mu held.
func (t *Turnstile) forgetRested() {
	for key, limit := range t.keys {
		if limit.Tokens() >= float64(t.burst) {
			delete(t.keys, key)
		}
	}
}
