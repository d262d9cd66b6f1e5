package connlimit

import "sync"

// KeyedCounter bounds how many things a key holds at once.
type KeyedCounter struct {
	most int // 0: no bound

	mu   sync.Mutex
	held map[string]int
}

// NewKeyedCounter allows each key most; 0 is no bound.
func NewKeyedCounter(most int) *KeyedCounter {
	return &KeyedCounter{most: most, held: make(map[string]int)}
}

// Take is false for a key that has most.
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

// Give undoes a successful Take.
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
