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
// 15 s, or the store says so now, or the store has not answered for 3 s while this node sees a gossip
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
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	if open {
		return k.unlessTrusted(held, k.confirmOpen(ctx, held))
	}
	answer := k.mayOpen(held)
	err := k.unlessTrusted(held, k.confirmOpening(ctx, held))
	answer(err == nil)
	if err == nil {
		k.recheckSoon()
	}
	return err
}

// unlessTrusted is what Confirm says when the store said err. A majority stands in for a store that has been silent for a while, and not for a pin
// below one that was served here.
func (k *Keeper) unlessTrusted(held pin.Holding, err error) error {
	known := k.seen.of(held.Room)
	switch {
	case err == nil, errors.Is(err, pin.ErrMissing), errors.Is(err, pin.ErrFenced):
		return err
	case errors.Is(err, errDamaged): // An edge heals it, as it places the room again.
		return fmt.Errorf("%w: %w", pin.ErrMissing, err)
	case held.Pin.Fence.Less(known.Fence):
		return &pin.FencedError{Room: held.Room, Current: known}
	case k.trustsMajority():
		k.log.Info("pin taken as confirmed by a gossip majority", "room", held.Room, "fence", held.Pin.Fence, "error", err)
		k.setAsserted("") // The store may not have this pin. The next refresh sees to it.
		k.seen.note(held.Room, held.Pin)
		return nil
	default:
		return fmt.Errorf("confirm room %s: %w: %w", held.Room, pin.ErrUnconfirmed, err)
	}
}

// confirmOpen asks the store about a room that is open here.
// The question is a write, for the answer of a store that refuses writes may be an old one.
func (k *Keeper) confirmOpen(ctx context.Context, held pin.Holding) error {
	began, pauses := k.start()
	found, err := k.pins.Refresh(ctx, []pin.Holding{held}, always)
	if err != nil {
		return err
	}
	stands, err := k.judge(ctx, held, found[0], true)
	if err != nil {
		return err
	}
	if !k.confirm(pin.Holding{Room: held.Room, Pin: stands}, began, pauses, found[0].Prolonged) {
		return errPaused
	}
	if stands != held.Pin { // A new pin of ours, for which the edge must ask again.
		return &pin.FencedError{Room: held.Room, Current: stands}
	}
	return nil
}

// confirmOpening asks the store about a room that is not open here, always: what was confirmed before it closed, or before
// somebody else opened it, counts no more. It writes nothing, but prolongs what it reads: the pin of a room that was empty for
// all the life of a pin must not expire, and be claimed for another node, while the room opens here. A pin that is missing was given before
// the store forgot, and somebody may have the room open since: the edge has to claim it again, and to ask.
func (k *Keeper) confirmOpening(ctx context.Context, held pin.Holding) error {
	if known := k.seen.of(held.Room); held.Pin.Fence.Less(known.Fence) {
		// The store has gone back behind what was open here. The edge that learns of it moves the pin above both.
		return &pin.FencedError{Room: held.Room, Current: known}
	}
	began, pauses := k.start()
	stands, err := k.pins.Prolong(ctx, held.Room)
	switch {
	case errors.Is(err, pin.ErrCorrupt):
		return fmt.Errorf("room %s: %w: %w", held.Room, pin.ErrMissing, err)
	case err != nil:
		return err
	case stands == held.Pin:
		if !k.confirm(held, began, pauses, true) {
			return errPaused
		}
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
		stands, err := k.judge(ctx, ours, pin.Found{Room: ours.Room, Stands: higher}, true)
		var fenced *pin.FencedError
		switch {
		case errors.As(err, &fenced):
			stands = fenced.Current
		case err != nil:
			return err
		}
		if !opening.Pin.Fence.Less(stands.Fence) { // The store forgot once more, and was told of ours meanwhile.
			return fmt.Errorf("room %s: %w", opening.Room, pin.ErrMissing)
		}
		return &pin.FencedError{Room: opening.Room, Current: stands}
	}
	return k.yield(opening, higher)
}

// yield tells the Holder that ours is outranked.
func (k *Keeper) yield(ours pin.Holding, to pin.Pin) error {
	k.log.Info("outranked", "room", ours.Room, "fence", ours.Pin.Fence, "by", to.Node, "by_fence", to.Fence)
	k.rooms.Outrank(ours.Room, to)
	k.dropOpening(ours)
	return &pin.FencedError{Room: ours.Room, Current: to}
}

// start marks the beginning of a question to the store.
func (k *Keeper) start() (began time.Time, pauses uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Now(), k.pauses
}

// confirm remembers that the store had our pin at began, and prolonged it, unless this process was paused since.
func (k *Keeper) confirm(h pin.Holding, began time.Time, pauses uint64, prolonged bool) bool {
	k.noticePause()
	k.mu.Lock()
	defer k.mu.Unlock()
	if pauses != k.pauses {
		return false
	}
	// A refresh that was under way while the room took a higher pin answers for the lower one. The higher stays confirmed:
	// without that its owner could not stand up for it.
	if c, ok := k.confirmed[h.Room]; !ok || !h.Pin.Fence.Less(c.pin.Fence) {
		c.pin, c.at = h.Pin, began
		if prolonged {
			c.prolonged = began
		}
		k.confirmed[h.Room] = c
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

// setAsserted says in which generations all our pins stand.
func (k *Keeper) setAsserted(in pin.Generations) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asserted = in
}

// hear notes that the store was heard at the given time.
func (k *Keeper) hear(at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.heard = at
}

// trustsMajority reports whether gossip may stand in for the store.
func (k *Keeper) trustsMajority() bool {
	if k.cfg.Majority == nil {
		return false
	}
	k.mu.Lock()
	rests := !k.paused.IsZero() && time.Since(k.paused) < majorityRestsFor || time.Since(k.heard) < silentFor
	k.mu.Unlock()
	return !rests && k.cfg.Majority()
}
