// Package pincache remembers the highest pin of each room that a process has seen, whether the owners confirmed it, and the
// highest epoch of all, from which the epochs of claims and moves are made. It is bounded, and knows no store.
package pincache

import (
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	maxCachedRooms = 16_384
	// A damaged pin with a huge epoch must not push all later epochs to the largest number.
	maxClockLead = 30 * 24 * time.Hour
)

// Cache is safe for concurrent use. The zero value is empty.
type Cache struct {
	// Clock gives the time from which epochs are made. If it is nil, time.Now is used.
	Clock func() time.Time

	mu      sync.Mutex
	highest uint64
	recent  map[ring.RoomID]cacheEntry
	older   map[ring.RoomID]cacheEntry
}

type cacheEntry struct {
	pin pin.Pin
	// verified is the incarnation in which the owners confirmed the pin, or 0 if they have not.
	verified pin.Incarnation
	// at is when the store answered with this pin.
	at time.Time
}

// Note remembers the pin p, or only its fence, if it is the highest of the room.
func (c *Cache) Note(room ring.RoomID, p pin.Pin) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noteLocked(room, p)
}

// Verified notes that the owners confirmed the pin p in the incarnation in.
func (c *Cache) Verified(room ring.RoomID, p pin.Pin, in pin.Incarnation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noteLocked(room, p)
	if known := c.recent[room]; known.pin == p {
		c.recent[room] = cacheEntry{pin: p, verified: in, at: time.Now()}
	}
}

// IsVerified reports whether the owners confirmed the pin p in the incarnation in. It is false for the unknown
// incarnation 0.
func (c *Cache) IsVerified(room ring.RoomID, p pin.Pin, in pin.Incarnation) bool {
	known := c.get(room)
	return in != 0 && known.pin == p && known.verified == in
}

// IsRecent reports whether the store showed the pin p within that time.
func (c *Cache) IsRecent(room ring.RoomID, p pin.Pin, within time.Duration) bool {
	known := c.get(room)
	return known.pin == p && !known.at.IsZero() && Elapsed(known.at, time.Now()) < within
}

func (c *Cache) noteLocked(room ring.RoomID, p pin.Pin) {
	if p.Fence.Epoch > c.highest && p.Fence.Epoch <= uint64(max(c.now().Add(maxClockLead).UnixMilli(), 0)) {
		c.highest = p.Fence.Epoch
	}
	_, recent := c.recent[room]
	known := c.lookup(room)
	if order := known.pin.Fence.Compare(p.Fence); order < 0 || order == 0 && known.pin.Node == "" {
		known = cacheEntry{pin: p}
	} else if recent {
		return
	}
	if len(c.recent) >= maxCachedRooms {
		c.older, c.recent = c.recent, nil
	}
	if c.recent == nil {
		c.recent = make(map[ring.RoomID]cacheEntry)
	}
	c.recent[room] = known
}

// lookup returns what is known of a room. The caller holds mu.
func (c *Cache) lookup(room ring.RoomID) cacheEntry {
	if known, ok := c.recent[room]; ok {
		return known
	}
	return c.older[room]
}

func (c *Cache) get(room ring.RoomID) cacheEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lookup(room)
}

// Of returns the highest pin seen of the room. Sometimes only its fence is known.
func (c *Cache) Of(room ring.RoomID) pin.Pin { return c.get(room).pin }

// FreshEpoch returns the epoch for a claim: the Unix time in milliseconds, or one above the highest epoch seen.
func (c *Cache) FreshEpoch(room ring.RoomID) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return max(uint64(max(c.now().UnixMilli(), 0)), c.highest+1, c.lookup(room).pin.Fence.Epoch+1)
}

func (c *Cache) now() time.Time {
	if c.Clock == nil {
		return time.Now()
	}
	return c.Clock()
}

// NextEpoch returns the epoch for a move: one above p and all known pins of the room.
func (c *Cache) NextEpoch(room ring.RoomID, p pin.Pin) uint64 {
	return max(p.Fence.Epoch, c.Of(room).Fence.Epoch) + 1
}

// Elapsed returns the larger of the monotonic and the wall-clock time between two moments. The first stops while the
// machine is suspended, and the second may be set.
func Elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}
