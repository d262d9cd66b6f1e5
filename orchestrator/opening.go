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
	pin    pin.Pin
	at     time.Time       // when it was last asked for
	asking []chan struct{} // calls of Confirm under way; each is closed when it ends
	let    bool            // whether one of them allowed it
}

// counts reports whether the room may still open under it.
func (o *opening) counts() bool { return o.let && time.Since(o.at) < confirmedFor }

// Opening returns the highest pin under which room may be about to open here, or none. A caller that asks whether this node
// holds the room must be told of it as of an open one. It first waits for the calls of Confirm under way, 300 ms at
// most: they may have read the store before the caller wrote to it. The error is the context's.
func (k *Keeper) Opening(ctx context.Context, room ring.RoomID) (pin.Pin, error) {
	var asking []chan struct{}
	k.mu.Lock()
	for _, o := range k.opening[room] {
		asking = append(asking, o.asking...)
	}
	k.mu.Unlock()
	for _, answered := range asking {
		select {
		case <-answered:
		case <-ctx.Done():
			return pin.Pin{}, ctx.Err()
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var top pin.Pin
	for _, o := range k.opening[room] {
		if o.counts() && top.Fence.Less(o.pin.Fence) {
			top = o.pin
		}
	}
	return top, nil
}

// mayOpen notes that Confirm is about to ask for a pin. The caller must call answer with the outcome.
func (k *Keeper) mayOpen(h pin.Holding) (answer func(leave bool)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.openingOf(h)
	if o == nil {
		o = &opening{pin: h.Pin}
		k.opening[h.Room] = append(k.opening[h.Room], o)
	}
	answered := make(chan struct{})
	o.at, o.asking = time.Now(), append(o.asking, answered)
	return func(leave bool) {
		k.mu.Lock()
		defer k.mu.Unlock()
		close(answered)
		o.asking = slices.DeleteFunc(o.asking, func(q chan struct{}) bool { return q == answered })
		o.let = o.let || leave
		k.dropOpenings(h.Room, func(o *opening) bool { return !o.counts() })
	}
}

func (k *Keeper) dropOpening(h pin.Holding) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if o := k.openingOf(h); o != nil {
		o.let = false
	}
	k.dropOpenings(h.Room, func(o *opening) bool { return !o.counts() })
}

func (k *Keeper) isOpening(h pin.Holding) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.openingOf(h) != nil
}

// openingOf returns the opening of a pin, or nil. Call it with mu held.
func (k *Keeper) openingOf(h pin.Holding) *opening {
	for _, o := range k.opening[h.Room] {
		if o.pin == h.Pin {
			return o
		}
	}
	return nil
}

// dropOpenings forgets the openings of a room that are done and not being asked for. Call it with mu held.
func (k *Keeper) dropOpenings(room ring.RoomID, done func(*opening) bool) {
	left := slices.DeleteFunc(k.opening[room], func(o *opening) bool { return len(o.asking) == 0 && done(o) })
	if len(left) == 0 {
		delete(k.opening, room)
		return
	}
	k.opening[room] = left
}

// forget drops lapsed confirmations and openings, and openings that were open at the given time. It returns the open rooms
// and, after them, the openings that were confirmed: a pin that the store has not shown must not be synced.
func (k *Keeper) forget(open []pin.Holding, at time.Time) []pin.Holding {
	openUnder := make(map[ring.RoomID]pin.Pin, len(open))
	for _, h := range open {
		openUnder[h.Room] = h.Pin
	}
	held := slices.Clone(open)
	k.mu.Lock()
	defer k.mu.Unlock()
	for room, c := range k.confirmed {
		if _, ok := openUnder[room]; !ok && time.Since(c.at) >= confirmedFor {
			delete(k.confirmed, room)
		}
	}
	for room := range k.opening {
		p, ok := openUnder[room]
		k.dropOpenings(room, func(o *opening) bool { return !o.counts() || ok && p == o.pin && o.at.Before(at) })
		for _, o := range k.opening[room] {
			if !ok && k.confirmed[room].pin == o.pin && k.seen.of(room) == o.pin {
				held = append(held, pin.Holding{Room: room, Pin: o.pin})
			}
		}
	}
	return held
}
