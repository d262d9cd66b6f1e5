package connlimit

import "sync"

// KeyedCounter bounds a number for each key.
type KeyedCounter struct {
	most int

	mu   sync.Mutex
	held map[string]int
}

// NewKeyedCounter allows each key most; 0: any number.
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

// Give undoes a true Take.
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
