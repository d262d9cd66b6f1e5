package testkit

import (
	"slices"
	"sync"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Rooms are a pinowner.OpenRooms.
type Rooms struct {
	mu     sync.Mutex
	held   []pin.Holding
	fenced []pin.Holding
}

// NewRooms returns open rooms.
func NewRooms(held ...pin.Holding) *Rooms { return &Rooms{held: held} }

// Held lists the open rooms.
func (r *Rooms) Held() []pin.Holding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.held)
}

// Open replaces the open rooms, and forgets what was fenced.
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

// Fenced lists the calls of Fence since Open.
func (r *Rooms) Fenced() []pin.Holding {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.fenced)
}
