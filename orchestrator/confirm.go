package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

var (
	// errVanished: the pin was there and then it was not. The next refresh asserts it.
	errVanished = errors.New("the pin vanished while it was being confirmed")
	// errDamaged: an owner cannot tell what the damage replaced, perhaps a higher pin than its own. The next edge that
	// comes across it asks everybody who may have the room open, and heals it.
	errDamaged = errors.New("the pin is damaged")
	// errPaused: the answer is older than a pause of this process.
	errPaused = errors.New("this process was paused before the answer came")
)

// Confirm returns nil when p is known to stand for room: the room is open here and p was confirmed in the last
// 15 s, or the store says so now, or the store is unreachable while this node sees a gossip
// majority. Otherwise the error is a *pin.FencedError (the Holder has been told), or
// wraps pin.ErrMissing (p does not stand: the room must be placed again) or
// pin.ErrUnconfirmed. Call it before opening a room and before taking a new peer.
func (k *Keeper) Confirm(ctx context.Context, room ring.RoomID, p pin.Pin) error {
	k.noticePause()
	held := pin.Holding{Room: room, Pin: p}
	open := slices.Contains(k.rooms.Held(), held)
	if open && k.isConfirmed(room, p) {
		return nil
	}
	if !open {
		k.noteOpening(room, p)
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	ask := k.confirmOpening
	if open {
		ask = k.confirmOpen
	}
	err := ask(ctx, held)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pin.ErrMissing), errors.Is(err, pin.ErrFenced):
		k.dropOpening(held)
		return err
	case k.trustsMajority():
		k.log.Info("pin taken as confirmed by a gossip majority", "room", room, "fence", p.Fence, "error", err)
		k.setAsserted("") // The store may not have this pin. The next refresh sees to it.
		return nil
	default:
		return fmt.Errorf("confirm room %s: %w: %w", room, pin.ErrUnconfirmed, err)
	}
}

// confirmOpen asks the store about a room that is open here.
func (k *Keeper) confirmOpen(ctx context.Context, held pin.Holding) error {
	began, pauses := k.start()
	found, err := k.pins.Refresh(ctx, []pin.Holding{held})
	if err != nil {
		return err
	}
	stands, err := k.judge(ctx, held, found[0], true)
	if err != nil {
		return err
	}
	if !k.confirm(pin.Holding{Room: held.Room, Pin: stands}, began, pauses) {
		return errPaused
	}
	if stands != held.Pin { // A new pin of ours, for which the edge must ask again.
		return &pin.FencedError{Room: held.Room, Current: stands}
	}
	return nil
}

// confirmOpening asks the store about a room that is not open here, always: what was confirmed before it closed, or before
// somebody else opened it, counts no more. It writes nothing. A pin that is missing was given before the store forgot,
// and somebody may have the room open since: the edge has to claim it again, and to ask.
func (k *Keeper) confirmOpening(ctx context.Context, held pin.Holding) error {
	if known := k.seen.of(held.Room); held.Pin.Fence.Less(known.Fence) {
		// The store has gone back behind what was open here. The edge that learns of it moves the pin above both.
		return &pin.FencedError{Room: held.Room, Current: known}
	}
	began, pauses := k.start()
	stands, _, err := k.pins.Get(ctx, held.Room)
	switch {
	case errors.Is(err, pin.ErrCorrupt):
		return fmt.Errorf("room %s: %w: %w", held.Room, pin.ErrMissing, err)
	case err != nil:
		return err
	case stands == held.Pin:
		if !k.confirm(held, began, pauses) {
			return errPaused
		}
		k.recheckSoon()
		return nil
	case held.Pin.Fence.Less(stands.Fence):
		return k.outranked(ctx, held, stands)
	default: // Nothing, or a lower one: who has the room open is for the edge to find out.
		return fmt.Errorf("room %s: %w", held.Room, pin.ErrMissing)
	}
}

// outranked ends an opening under a pin that a higher one has replaced. When the room is open here all the same, under a pin of its own,
// the higher one is judged as a refresh does: it may have been claimed because the store forgot, and then the room and its
// people stay here.
func (k *Keeper) outranked(ctx context.Context, opening pin.Holding, higher pin.Pin) error {
	for _, ours := range k.rooms.Held() {
		if ours.Room != opening.Room {
			continue
		}
		k.dropOpening(opening)
		stands, err := k.judge(ctx, ours, pin.Found{Room: ours.Room, Stands: higher}, true)
		if err != nil {
			return err
		}
		return &pin.FencedError{Room: ours.Room, Current: stands}
	}
	return k.yield(opening, higher)
}

// yield tells the Holder that ours is outranked.
func (k *Keeper) yield(ours pin.Holding, to pin.Pin) error {
	k.log.Info("outranked", "room", ours.Room, "fence", ours.Pin.Fence, "by", to.Node, "by_fence", to.Fence)
	k.dropOpening(ours)
	k.rooms.Outrank(ours.Room, to)
	return &pin.FencedError{Room: ours.Room, Current: to}
}

// Opening returns the pin under which room may be about to open here, or none: it was confirmed, or is being
// confirmed. Who asks whether this node holds the room must be told of it as of an open one.
func (k *Keeper) Opening(room ring.RoomID) pin.Pin {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c, ok := k.opening[room]; ok && time.Since(c.at) < confirmedFor {
		return c.pin
	}
	return pin.Pin{}
}

// start marks the beginning of a question to the store.
func (k *Keeper) start() (began time.Time, pauses uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Now(), k.pauses
}

// confirm remembers that the store had our pin at began, unless this process was paused since.
func (k *Keeper) confirm(h pin.Holding, began time.Time, pauses uint64) bool {
	k.noticePause()
	k.mu.Lock()
	defer k.mu.Unlock()
	if pauses != k.pauses {
		return false
	}
	// A refresh that was under way while the room took a higher pin answers for the lower one. The higher stays confirmed:
	// without that its owner could not stand up for it.
	if c, ok := k.confirmed[h.Room]; !ok || !h.Pin.Fence.Less(c.pin.Fence) {
		k.confirmed[h.Room] = confirmation{pin: h.Pin, at: began}
	}
	k.seen.note(h.Room, h.Pin)
	return true
}

// isConfirmed reports whether p was confirmed lately.
func (k *Keeper) isConfirmed(room ring.RoomID, p pin.Pin) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	c, ok := k.confirmed[room]
	return ok && c.pin == p && time.Since(c.at) < confirmedFor
}

// noteOpening remembers that a room may be about to open under p.
func (k *Keeper) noteOpening(room ring.RoomID, p pin.Pin) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.opening[room] = confirmation{pin: p, at: time.Now()}
}

// dropOpening forgets a room that is not going to open under a pin.
func (k *Keeper) dropOpening(h pin.Holding) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.opening[h.Room].pin == h.Pin {
		delete(k.opening, h.Room)
	}
}

// setAsserted says in which generations all our pins stand.
func (k *Keeper) setAsserted(in pin.Generations) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asserted = in
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
	for room, c := range k.opening {
		switch p, ok := names[room]; {
		case time.Since(c.at) >= confirmedFor, ok && p == c.pin && c.at.Before(at):
			delete(k.opening, room)
		case !ok && k.confirmed[room].pin == c.pin:
			held = append(held, pin.Holding{Room: room, Pin: c.pin})
		}
	}
	return held
}

// trustsMajority reports whether gossip may stand in for the store.
func (k *Keeper) trustsMajority() bool {
	if k.cfg.Majority == nil {
		return false
	}
	k.mu.Lock()
	rests := !k.paused.IsZero() && time.Since(k.paused) < majorityRestsFor
	k.mu.Unlock()
	return !rests && k.cfg.Majority()
}
