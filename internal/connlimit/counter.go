package connlimit

import "sync"

// KeyedCounter bounds how many of something each key has at a time.
type KeyedCounter struct {
	most int

	mu   sync.Mutex
	held map[string]int
}

// NewKeyedCounter allows each key up to most. With 0 it allows any number.
func NewKeyedCounter(most int) *KeyedCounter {
	return &KeyedCounter{most: most, held: make(map[string]int)}
}

// Take counts one more for the key. It returns false if the key has the most already.
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

// Give counts one less, after a Take that returned true.
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
