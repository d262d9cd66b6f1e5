package orchestrator

import (
	"context"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// opening is a pin under which a room may be about to open: Confirm is being asked for it, or has let it open.
type opening struct {
	pin    pin.Pin
	at     time.Time       // when it was last asked for
	asking []chan struct{} // questions that have no answer yet; each is closed when it has
	let    bool            // whether one of them let it open
}

// counts reports whether the room may still open under it: between leave and opening lie some microseconds, or a pause.
func (o *opening) counts() bool { return o.let && time.Since(o.at) < confirmedFor }

// Opening returns the highest pin under which room has leave to open here and may not be open yet, or none. Who asks whether
// this node holds the room must be told of it as of an open one. It waits for the questions that Confirm is
// asked at this moment, which takes 300 ms at most: what they read may be older than what the caller knows, so he must be told if one of them
// gets leave, and must not be told if none does. Later ones read what he knows. The error is the context's.
func (k *Keeper) Opening(ctx context.Context, room ring.RoomID) (pin.Pin, error) {
	for _, answered := range k.asking(room) {
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

// asking lists the questions about a room that have no answer yet.
func (k *Keeper) asking(room ring.RoomID) []chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	var all []chan struct{}
	for _, o := range k.opening[room] {
		all = append(all, o.asking...)
	}
	return all
}

// mayOpen remembers that a room may open under a pin, which Confirm is about to ask for. The answer is to be given to
// what it returns: leave to open the room, or none. Leave that another question has got stays.
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

// dropOpening forgets a pin under which the Holder will not open the room any more.
func (k *Keeper) dropOpening(h pin.Holding) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if o := k.openingOf(h); o != nil {
		o.let = false
	}
	k.dropOpenings(h.Room, func(o *opening) bool { return !o.counts() })
}

// isOpening reports whether h was about to open lately.
func (k *Keeper) isOpening(h pin.Holding) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.openingOf(h) != nil
}

// openingOf finds a pin, or nil. Call it with mu held.
func (k *Keeper) openingOf(h pin.Holding) *opening {
	for _, o := range k.opening[h.Room] {
		if o.pin == h.Pin {
			return o
		}
	}
	return nil
}

// dropOpenings forgets those of a room that are done and not being asked for. Call it with mu held.
func (k *Keeper) dropOpenings(room ring.RoomID, done func(*opening) bool) {
	left := slices.DeleteFunc(k.opening[room], func(o *opening) bool { return len(o.asking) == 0 && done(o) })
	if len(left) == 0 {
		delete(k.opening, room)
		return
	}
	k.opening[room] = left
}

// forget drops the confirmations that have lapsed of rooms that are not held, and the openings that were open at the given
// time or have lapsed, which bounds the tables by the rooms held and the openings of 15 s. It returns what is held, and after it what
// is being opened and was confirmed: a pin that the store has not shown is not asserted.
func (k *Keeper) forget(open []pin.Holding, at time.Time) []pin.Holding {
	names := make(map[ring.RoomID]pin.Pin, len(open))
	for _, h := range open {
		names[h.Room] = h.Pin
	}
	held := slices.Clone(open)
	k.mu.Lock()
	defer k.mu.Unlock()
	for room, c := range k.confirmed {
		if _, ok := names[room]; !ok && time.Since(c.at) >= confirmedFor {
			delete(k.confirmed, room)
		}
	}
	for room := range k.opening {
		p, ok := names[room]
		k.dropOpenings(room, func(o *opening) bool { return !o.counts() || ok && p == o.pin && o.at.Before(at) })
		for _, o := range k.opening[room] {
			if !ok && k.confirmed[room].pin == o.pin && k.seen.of(room) == o.pin {
				held = append(held, pin.Holding{Room: room, Pin: o.pin})
			}
		}
	}
	return held
}
