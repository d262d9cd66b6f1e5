package pinowner

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

type opening struct {
	pin     pin.Pin
	at      time.Time
	asking  []chan struct{}
	allowed bool
}

func (o *opening) pending() bool { return o.allowed && time.Since(o.at) < confirmedFor }

// Opening returns the highest pin under which the room may open soon, or the zero pin. It first waits for calls of
// Confirm under way, since they may have read the store before the caller of Opening wrote to it.
func (own *Owner) Opening(ctx context.Context, room ring.RoomID) (pin.Pin, error) {
	var asking []chan struct{}
	own.mu.Lock()
	for _, o := range own.opening[room] {
		asking = append(asking, o.asking...)
	}
	own.mu.Unlock()
	// The wait is without mu, since Confirm needs mu to answer.
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

func (own *Owner) beginOpening(h pin.Holding) (answer func(leave bool)) {
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

func (own *Owner) dropOpening(h pin.Holding) {
	own.mu.Lock()
	defer own.mu.Unlock()
	if o := own.openingOf(h); o != nil {
		o.allowed = false
	}
	own.dropOpenings(h.Room, func(o *opening) bool { return !o.pending() })
}

func (own *Owner) isOpening(h pin.Holding) bool {
	own.mu.Lock()
	defer own.mu.Unlock()
	return own.openingOf(h) != nil
}

// openingOf returns the opening under exactly this pin, or nil. The caller holds mu.
func (own *Owner) openingOf(h pin.Holding) *opening {
	for _, o := range own.opening[h.Room] {
		if o.pin == h.Pin {
			return o
		}
	}
	return nil
}

func (own *Owner) dropOpenings(room ring.RoomID, done func(*opening) bool) {
	left := slices.DeleteFunc(own.opening[room], func(o *opening) bool { return len(o.asking) == 0 && done(o) })
	if len(left) == 0 {
		delete(own.opening, room)
		return
	}
	own.opening[room] = left
}

// prune forgets confirmations that are too old to count, and openings that ended before at.
func (own *Owner) prune(open []pin.Holding, at time.Time) {
	openUnder := byRoom(open)
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
	}
}

func byRoom(list []pin.Holding) map[ring.RoomID]pin.Pin {
	pins := make(map[ring.RoomID]pin.Pin, len(list))
	for _, h := range list {
		pins[h.Room] = h.Pin
	}
	return pins
}

// withOpenings adds the rooms that are about to open under a confirmed pin. It leaves out pins that the store has
// never shown, because they must not be written.
func (own *Owner) withOpenings(open []pin.Holding) []pin.Holding {
	openUnder, held := byRoom(open), slices.Clone(open)
	own.mu.Lock()
	defer own.mu.Unlock()
	for room, openings := range own.opening {
		_, ok := openUnder[room]
		for _, o := range openings {
			if !ok && own.confirmed[room].pin == o.pin && own.cache.Of(room) == o.pin {
				held = append(held, pin.Holding{Room: room, Pin: o.pin})
			}
		}
	}
	return held
}
