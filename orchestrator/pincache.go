package orchestrator

import (
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	maxCachedRooms = 16_384
	// maxClockLead: one damaged pin must not push all epochs towards pin.MaxEpoch.
	maxClockLead = 30 * 24 * time.Hour
)

// pinCache has the highest pin of each room, and the highest epoch of all.
type pinCache struct {
	clock func() time.Time // nil is time.Now

	mu      sync.Mutex // guards the fields below
	highest uint64
	recent  map[ring.RoomID]cacheEntry
	older   map[ring.RoomID]cacheEntry
}

type cacheEntry struct {
	pin      pin.Pin
	verified pin.Incarnation // in which the owners confirmed the pin; or 0
	at       time.Time       // the store last showed it
}

// note remembers p if it is the room's highest. p may have only a fence.
func (s *pinCache) note(room ring.RoomID, p pin.Pin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteLocked(room, p)
}

func (s *pinCache) verified(room ring.RoomID, p pin.Pin, in pin.Incarnation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteLocked(room, p)
	if known := s.recent[room]; known.pin == p {
		s.recent[room] = cacheEntry{pin: p, verified: in, at: time.Now()}
	}
}

func (s *pinCache) isVerified(room ring.RoomID, p pin.Pin, in pin.Incarnation) bool {
	known := s.get(room)
	return in != 0 && known.pin == p && known.verified == in
}

func (s *pinCache) isRecent(room ring.RoomID, p pin.Pin, within time.Duration) bool {
	known := s.get(room)
	return known.pin == p && !known.at.IsZero() && elapsed(known.at, time.Now()) < within
}

func (s *pinCache) noteLocked(room ring.RoomID, p pin.Pin) {
	if p.Fence.Epoch > s.highest && p.Fence.Epoch <= uint64(max(s.now().Add(maxClockLead).UnixMilli(), 0)) {
		s.highest = p.Fence.Epoch
	}
	_, recent := s.recent[room]
	known := s.look(room)
	if order := known.pin.Fence.Compare(p.Fence); order < 0 || order == 0 && known.pin.Node == "" {
		known = cacheEntry{pin: p}
	} else if recent {
		return
	}
	if len(s.recent) >= maxCachedRooms {
		s.older, s.recent = s.recent, nil
	}
	if s.recent == nil {
		s.recent = make(map[ring.RoomID]cacheEntry)
	}
	s.recent[room] = known
}

// look needs mu.
func (s *pinCache) look(room ring.RoomID) cacheEntry {
	if known, ok := s.recent[room]; ok {
		return known
	}
	return s.older[room]
}

func (s *pinCache) get(room ring.RoomID) cacheEntry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.look(room)
}

func (s *pinCache) of(room ring.RoomID) pin.Pin { return s.get(room).pin }

// freshEpoch is Unix milliseconds, but above every epoch seen.
func (s *pinCache) freshEpoch(room ring.RoomID) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(uint64(max(s.now().UnixMilli(), 0)), s.highest+1, s.look(room).pin.Fence.Epoch+1)
}

func (s *pinCache) now() time.Time {
	if s.clock == nil {
		return time.Now()
	}
	return s.clock()
}

func (s *pinCache) nextEpoch(room ring.RoomID, p pin.Pin) uint64 {
	return max(p.Fence.Epoch, s.of(room).Fence.Epoch) + 1
}
