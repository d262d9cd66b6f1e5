package connlimit

import "sync"

// KeyedCounter bounds how many things each key holds at once.
type KeyedCounter struct {
	most int // 0 counts nothing

	mu   sync.Mutex
	held map[string]int
}

// NewKeyedCounter allows each key most at once; 0 is no bound.
func NewKeyedCounter(most int) *KeyedCounter {
	return &KeyedCounter{most: most, held: make(map[string]int)}
}

// Take is false if the key has as many as it may.
func (c *KeyedCounter) Take(key string) bool {
	if c.most == 0 {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[key] >= c.most {
		return false
	}
	c.held[key]++
	return true
}

// Give takes back a Take that succeeded.
func (c *KeyedCounter) Give(key string) {
	if c.most == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[key]--; c.held[key] <= 0 {
		delete(c.held, key)
	}
}
