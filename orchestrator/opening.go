package orchestrator

import (
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// opening is a pin under which a room may be about to open: Confirm is being asked for it, or has let it open.
type opening struct {
	pin    pin.Pin
	at     time.Time // when it was last asked for
	asking int       // questions that have no answer yet
	let    bool      // whether one of them let it open
}

// counts reports whether the room may still open under it: between the answer and the opening lie some microseconds, or a pause.
func (o opening) counts() bool { return o.asking > 0 || o.let && time.Since(o.at) < confirmedFor }

// Opening returns the highest pin under which room may be about to open here, or none. Who asks whether this node holds the
// room must be told of it as of an open one.
func (k *Keeper) Opening(room ring.RoomID) pin.Pin {
	k.mu.Lock()
	defer k.mu.Unlock()
	var top pin.Pin
	for _, o := range k.opening[room] {
		if o.counts() && top.Fence.Less(o.pin.Fence) {
			top = o.pin
		}
	}
	return top
}

// mayOpen remembers that a room may open under a pin that Confirm is about to ask for.
func (k *Keeper) mayOpen(h pin.Holding) {
	k.mu.Lock()
	defer k.mu.Unlock()
	o := k.openingOf(h)
	if o == nil {
		k.opening[h.Room] = append(k.opening[h.Room], &opening{pin: h.Pin})
		o = k.openingOf(h)
	}
	o.at = time.Now()
	o.asking++
}

// opens says how a question of mayOpen ended: with leave to open the room, or without. Leave that another question
// has got stays.
func (k *Keeper) opens(h pin.Holding, leave bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if o := k.openingOf(h); o != nil {
		o.asking, o.let = max(o.asking-1, 0), o.let || leave
	}
	k.dropOpenings(h.Room, func(o *opening) bool { return !o.counts() })
}

// dropOpening forgets a pin under which the Holder will not open the room any more.
func (k *Keeper) dropOpening(h pin.Holding) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dropOpenings(h.Room, func(o *opening) bool { return o.pin == h.Pin })
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

// dropOpenings forgets those of a room that are done. Call it with mu held.
func (k *Keeper) dropOpenings(room ring.RoomID, done func(*opening) bool) {
	left := slices.DeleteFunc(k.opening[room], done)
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
			if !ok && k.confirmed[room].pin == o.pin {
				held = append(held, pin.Holding{Room: room, Pin: o.pin})
			}
		}
	}
	return held
}
