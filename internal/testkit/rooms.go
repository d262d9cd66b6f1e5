package testkit

import (
	"slices"
	"sync"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Rooms is a pinowner.OpenRooms for tests.
type Rooms struct {
	mu     sync.Mutex
	held   []pin.Holding
	fenced []pin.Holding
}

// NewRooms returns Rooms in which these are open.
func NewRooms(held ...pin.Holding) *Rooms { return &Rooms{held: held} }

// Held lists the open rooms.
func (r *Rooms) Held() []pin.Holding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.held)
}

// Open replaces the open rooms, and forgets which were fenced.
func (r *Rooms) Open(held ...pin.Holding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held, r.fenced = held, nil
}

// Fence closes a room.
func (r *Rooms) Fence(room ring.RoomID, higher pin.Pin) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fenced = append(r.fenced, pin.Holding{Room: room, Pin: higher})
	r.held = slices.DeleteFunc(r.held, func(h pin.Holding) bool { return h.Room == room })
}

// Fenced returns the calls of Fence since the last Open.
func (r *Rooms) Fenced() []pin.Holding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.fenced)
}
