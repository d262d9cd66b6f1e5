package orchestrator

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// opening is a pin that Confirm is being asked for, or has allowed, and under which the room may not be open yet.
type opening struct {
	pin     pin.Pin
	at      time.Time       // when it was last asked for
	asking  []chan struct{} // calls of Confirm under way; each is closed when it ends
	allowed bool            // whether one of them allowed it
}

// pending reports whether the room may still open under it.
func (o *opening) pending() bool { return o.allowed && time.Since(o.at) < confirmedFor }

// Opening returns the highest pin under which room may be about to open here, or none. A caller that asks whether this node
// holds the room must be told of it as of an open one. It first waits for the calls of Confirm under way, 300 ms at
// most: they may have read the store before the caller wrote to it. The error is the context's.
func (own *PinOwner) Opening(ctx context.Context, room ring.RoomID) (pin.Pin, error) {
	var asking []chan struct{}
	own.mu.Lock()
	for _, o := range own.opening[room] {
		asking = append(asking, o.asking...)
	}
	own.mu.Unlock()
	for _, answered := range asking {
		select {
		case <-answered:
		case <-ctx.Done():
			return pin.Pin{}, ctx.Err()
		}
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	var top pin.Pin
	for _, o := range own.opening[room] {
		if o.pending() && top.Fence.Less(o.pin.Fence) {
			top = o.pin
		}
	}
	return top, nil
}

// mayOpen notes that Confirm is about to ask for a pin. The caller must call answer with the outcome.
func (own *PinOwner) mayOpen(h pin.Holding) (answer func(leave bool)) {
	own.mu.Lock()
	defer own.mu.Unlock()
	o := own.openingOf(h)
	if o == nil {
		o = &opening{pin: h.Pin}
		own.opening[h.Room] = append(own.opening[h.Room], o)
	}
	answered := make(chan struct{})
	o.at, o.asking = time.Now(), append(o.asking, answered)
	return func(leave bool) {
		own.mu.Lock()
		defer own.mu.Unlock()
		close(answered)
		o.asking = slices.DeleteFunc(o.asking, func(q chan struct{}) bool { return q == answered })
		o.allowed = o.allowed || leave
		own.dropOpenings(h.Room, func(o *opening) bool { return !o.pending() })
	}
}

func (own *PinOwner) dropOpening(h pin.Holding) {
	own.mu.Lock()
	defer own.mu.Unlock()
	if o := own.openingOf(h); o != nil {
		o.allowed = false
	}
	own.dropOpenings(h.Room, func(o *opening) bool { return !o.pending() })
}

func (own *PinOwner) isOpening(h pin.Holding) bool {
	own.mu.Lock()
	defer own.mu.Unlock()
	return own.openingOf(h) != nil
}

// openingOf returns the opening of a pin, or nil. Call it with mu held.
func (own *PinOwner) openingOf(h pin.Holding) *opening {
	for _, o := range own.opening[h.Room] {
		if o.pin == h.Pin {
			return o
		}
	}
	return nil
}

// dropOpenings forgets the openings of a room that are done and not being asked for. Call it with mu held.
func (own *PinOwner) dropOpenings(room ring.RoomID, done func(*opening) bool) {
	left := slices.DeleteFunc(own.opening[room], func(o *opening) bool { return len(o.asking) == 0 && done(o) })
	if len(left) == 0 {
		delete(own.opening, room)
		return
	}
	own.opening[room] = left
}

// forget drops lapsed confirmations and openings, and openings that were open at the given time. It returns the open rooms
// and, after them, the openings that were confirmed: a pin that the store has not shown must not be synced.
func (own *PinOwner) forget(open []pin.Holding, at time.Time) []pin.Holding {
	openUnder := make(map[ring.RoomID]pin.Pin, len(open))
	for _, h := range open {
		openUnder[h.Room] = h.Pin
	}
	held := slices.Clone(open)
	own.mu.Lock()
	defer own.mu.Unlock()
	for room, c := range own.confirmed {
		if _, ok := openUnder[room]; !ok && time.Since(c.at) >= confirmedFor {
			delete(own.confirmed, room)
		}
	}
	for room := range own.opening {
		p, ok := openUnder[room]
		own.dropOpenings(room, func(o *opening) bool { return !o.pending() || ok && p == o.pin && o.at.Before(at) })
		for _, o := range own.opening[room] {
			if !ok && own.confirmed[room].pin == o.pin && own.cache.of(room) == o.pin {
				held = append(held, pin.Holding{Room: room, Pin: o.pin})
			}
		}
	}
	return held
}
