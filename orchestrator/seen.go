package orchestrator

import (
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// maxSeenRooms bounds each half of the cache, about 5 MB. A room that is forgotten can only get too low an
	// epoch if the store also lost it and it was last claimed by the clock of a store that ran ahead.
	maxSeenRooms = 16_384
	// maxClockLead is how far ahead of our clock an epoch may raise all later epochs. One damaged pin must
	// not push every room towards pin.MaxEpoch.
	maxClockLead = 30 * 24 * time.Hour
)

// seen is the pin cache: the highest pin of each room, and the highest epoch of all.
type seen struct {
	clock func() time.Time // nil is time.Now

	mu      sync.Mutex // guards the fields below
	highest uint64
	recent  map[ring.RoomID]sighting
	older   map[ring.RoomID]sighting
}

type sighting struct {
	pin    pin.Pin
	proven pin.Incarnation // of the store in which the pin was verified with the owners; 0 when it was not
	at     time.Time       // when the store last showed it
}

// note remembers p if it is the room's highest. p may have only a fence.
func (s *seen) note(room ring.RoomID, p pin.Pin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteLocked(room, p)
}

// prove remembers p, and that it is verified in incarnation in.
func (s *seen) prove(room ring.RoomID, p pin.Pin, in pin.Incarnation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteLocked(room, p)
	if known := s.recent[room]; known.pin == p {
		s.recent[room] = sighting{pin: p, proven: in, at: time.Now()}
	}
}

// isProven reports whether p is verified in incarnation in.
func (s *seen) isProven(room ring.RoomID, p pin.Pin, in pin.Incarnation) bool {
	known := s.get(room)
	return in != 0 && known.pin == p && known.proven == in
}

// isRecent reports whether the store showed p within that time.
func (s *seen) isRecent(room ring.RoomID, p pin.Pin, within time.Duration) bool {
	known := s.get(room)
	return known.pin == p && !known.at.IsZero() && elapsed(known.at, time.Now()) < within
}

// noteLocked is note for callers that hold mu.
func (s *seen) noteLocked(room ring.RoomID, p pin.Pin) {
	if p.Fence.Epoch > s.highest && p.Fence.Epoch <= uint64(max(s.now().Add(maxClockLead).UnixMilli(), 0)) {
		s.highest = p.Fence.Epoch
	}
	_, recent := s.recent[room]
	known := s.look(room)
	if order := known.pin.Fence.Compare(p.Fence); order < 0 || order == 0 && known.pin.Node == "" {
		known = sighting{pin: p}
	} else if recent {
		return
	}
	if len(s.recent) >= maxSeenRooms {
		s.older, s.recent = s.recent, nil
	}
	if s.recent == nil {
		s.recent = make(map[ring.RoomID]sighting)
	}
	s.recent[room] = known // It may come from the older half.
}

// look returns what is remembered of room. Call it with mu held.
func (s *seen) look(room ring.RoomID) sighting {
	if known, ok := s.recent[room]; ok {
		return known
	}
	return s.older[room]
}

// get is look for callers that do not hold mu.
func (s *seen) get(room ring.RoomID) sighting {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.look(room)
}

// of returns the highest pin seen of room. Only its fence may be known.
func (s *seen) of(room ring.RoomID) pin.Pin { return s.get(room).pin }

// freshEpoch is the epoch of a first claim: Unix milliseconds, but above every epoch seen, so that it
// grows also when the pin expired, the store lost it, or our clock is behind.
func (s *seen) freshEpoch(room ring.RoomID) uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(uint64(max(s.now().UnixMilli(), 0)), s.highest+1, s.look(room).pin.Fence.Epoch+1)
}

// now is the time by the clock that epochs are made of.
func (s *seen) now() time.Time {
	if s.clock == nil {
		return time.Now()
	}
	return s.clock()
}

// nextEpoch is the epoch that moves p: one above p and above what was seen of the room.
func (s *seen) nextEpoch(room ring.RoomID, p pin.Pin) uint64 {
	return max(p.Fence.Epoch, s.of(room).Fence.Epoch) + 1
}
