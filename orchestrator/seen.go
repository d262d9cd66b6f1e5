package orchestrator

import (
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// maxSeenRooms bounds the memory of pins: two generations of so many rooms, about
	// 10 MB at most. A room that is forgotten can only be placed at too low an epoch if the store
	// also lost it and it was last claimed by the clock of a store that ran ahead.
	maxSeenRooms = 16_384
	// maxClockLead is how far ahead of our clock an epoch may drag all our
	// later epochs. One damaged pin must not push every room towards pin.MaxEpoch.
	maxClockLead = 30 * 24 * time.Hour
)

// seen remembers the highest pin of each room, and the highest epoch of all.
type seen struct {
	clock func() time.Time // nil is time.Now

	mu      sync.Mutex // guards the fields below
	highest uint64
	recent  map[ring.RoomID]sighting
	older   map[ring.RoomID]sighting
}

// sighting is what is remembered of a room.
type sighting struct {
	pin    pin.Pin
	proven pin.Generation // of the store, in which the pin was found to be nobody else's room; 0 when that is not known
	at     time.Time      // when the store last showed it
}

// note remembers p if it is the room's highest. A pin with only a fence is welcome.
func (s *seen) note(room ring.RoomID, p pin.Pin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteLocked(room, p)
}

// prove remembers p, and that it needs no proof in generation in.
func (s *seen) prove(room ring.RoomID, p pin.Pin, in pin.Generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteLocked(room, p)
	if known := s.recent[room]; known.pin == p {
		s.recent[room] = sighting{pin: p, proven: in, at: time.Now()}
	}
}

// isProven reports whether p was proven in generation in.
func (s *seen) isProven(room ring.RoomID, p pin.Pin, in pin.Generation) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.look(room)
	return in != 0 && known.pin == p && known.proven == in
}

// isRecent reports whether the store showed p not longer ago than that.
func (s *seen) isRecent(room ring.RoomID, p pin.Pin, than time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.look(room)
	return known.pin == p && !known.at.IsZero() && elapsed(known.at, time.Now()) < than
}

// noteLocked is note for callers that hold mu.
func (s *seen) noteLocked(room ring.RoomID, p pin.Pin) {
	if p.Fence.Epoch > s.highest && p.Fence.Epoch <= uint64(max(s.now().Add(maxClockLead).UnixMilli(), 0)) {
		s.highest = p.Fence.Epoch
	}
	_, recent := s.recent[room]
	known := s.look(room)
	order := known.pin.Fence.Compare(p.Fence)
	if recent && (order > 0 || order == 0 && known.pin.Node != "") {
		return
	}
	if order < 0 || order == 0 && known.pin.Node == "" {
		known = sighting{pin: p}
	}
	if len(s.recent) >= maxSeenRooms {
		s.older, s.recent = s.recent, nil
	}
	if s.recent == nil {
		s.recent = make(map[ring.RoomID]sighting)
	}
	s.recent[room] = known // Perhaps out of the older half.
}

// look returns what is remembered of room. Call it with mu held.
func (s *seen) look(room ring.RoomID) sighting {
	if known, ok := s.recent[room]; ok {
		return known
	}
	return s.older[room]
}

// of returns the highest pin seen of room. Only its fence may be known.
func (s *seen) of(room ring.RoomID) pin.Pin {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.look(room).pin
}

// freshEpoch is the epoch of a first claim: Unix milliseconds, but above every epoch seen, so
// that it grows also when the pin expired, the store lost it, or our clock is behind.
func (s *seen) freshEpoch(room ring.RoomID) uint64 {
	known := s.of(room)
	s.mu.Lock()
	defer s.mu.Unlock()
	return max(uint64(max(s.now().UnixMilli(), 0)), s.highest+1, known.Fence.Epoch+1)
}

// now is the time by the clock that epochs are made of.
func (s *seen) now() time.Time {
	if s.clock == nil {
		return time.Now()
	}
	return s.clock()
}

// nextEpoch is the epoch that moves p: one more, or one more than what was seen of the room.
func (s *seen) nextEpoch(room ring.RoomID, p pin.Pin) uint64 {
	return max(p.Fence.Epoch, s.of(room).Fence.Epoch) + 1
}
