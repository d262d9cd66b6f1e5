package connlimit

import "sync"

// KeyedCounter bounds how many things each key holds at once.
type KeyedCounter struct {
	most int // of one key; 0 counts nothing

	mu   sync.Mutex // guards held
	held map[string]int
}

// NewKeyedCounter allows each key most things at once, any number if most is 0.
func NewKeyedCounter(most int) *KeyedCounter {
	return &KeyedCounter{most: most, held: make(map[string]int)}
}

// Take counts one more for the key, and reports false if it has as many as it may.
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

// Give takes back one Take that succeeded.
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
