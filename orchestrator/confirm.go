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

// errVanished: the pin was there and then it was not. The next refresh asserts it.
var errVanished = errors.New("the pin vanished while it was being confirmed")

// Confirm returns nil when p is known to stand for room: it was confirmed in the last
// 15 s, or the store says so now, or the store is unreachable while this node sees a gossip
// majority. Otherwise the error is a *pin.FencedError (the Holder has been told) or
// wraps pin.ErrUnconfirmed. Call it before opening a room and before taking a new peer.
func (k *Keeper) Confirm(ctx context.Context, room ring.RoomID, p pin.Pin) error {
	k.noticePause()
	k.noteOpening(room, p)
	if k.isConfirmed(room, p) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	held := pin.Holding{Room: room, Pin: p}
	began, pauses := k.start()
	found, err := k.pins.Refresh(ctx, []pin.Holding{held})
	if err == nil {
		held.Pin, err = k.judge(ctx, held, found[0], slices.Contains(k.rooms.Held(), held))
	}
	if err == nil {
		k.confirm(held, began, pauses)
		if held.Pin != p { // A new pin of ours, for which the edge must ask again.
			err = &pin.FencedError{Room: room, Current: held.Pin}
		}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pin.ErrFenced):
		k.dropOpening(room)
		return err
	case k.trustsMajority():
		k.log.Info("pin taken as confirmed by a gossip majority", "room", room, "fence", p.Fence, "error", err)
		k.setAsserted("") // The store may not have this pin. The next refresh sees to it.
		return nil
	default:
		k.dropOpening(room)
		return fmt.Errorf("confirm room %s: %w: %w", room, pin.ErrUnconfirmed, err)
	}
}

// refresh prolongs and checks the pins of all rooms held, and those of the rooms that are being opened.
// When none of them is in doubt afterwards, all are asserted in the generations that
// were read before: a room that opens later is confirmed before it does.
func (k *Keeper) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	generations, unknown := k.pins.Generations(ctx)
	open := k.rooms.Held()
	held := k.forget(open)
	if len(held) == 0 {
		if unknown == nil {
			k.setAsserted(pin.GenerationsOf(generations))
		}
		return unknown
	}
	began, pauses := k.start()
	found, err := k.pins.Refresh(ctx, held)
	if err != nil {
		return err
	}
	var faults []error
	for i, f := range found {
		stands, err := k.judge(ctx, held[i], f, i < len(open))
		switch {
		case err == nil && i < len(open):
			k.confirm(pin.Holding{Room: held[i].Room, Pin: stands}, began, pauses)
		case err == nil: // Confirm says when this one was confirmed.
		case errors.Is(err, pin.ErrFenced) && !f.Stands.Fence.Less(held[i].Pin.Fence): // The Holder has been told; nothing failed.
		case len(faults) < 3: // One store, one reason: three say it well enough.
			faults = append(faults, err)
		}
	}
	if len(faults) == 0 && unknown == nil {
		k.setAsserted(pin.GenerationsOf(generations))
	}
	return errors.Join(append(faults, unknown)...)
}

// judge ends in a store that holds our pin (returned) or a higher one (*pin.FencedError, the
// Holder told), or in not knowing. A lower pin is a lost write, and a text that is no
// pin is damage: both are replaced by ours, the lower one only while the room is open here. A fresh pin where ours stood was claimed by somebody
// who could not know of us, because the store forgot: while the room is open here, it is replaced by
// a new pin of ours above it.
func (k *Keeper) judge(ctx context.Context, ours pin.Holding, f pin.Found, open bool) (pin.Pin, error) {
	stands, err := f.Stands, f.Err
	if f.Asserted {
		k.log.Info("missing pin written again", "room", ours.Room, "fence", ours.Pin.Fence)
	}
	for range maxSteps {
		var corrupt *pin.CorruptError
		switch {
		case errors.As(err, &corrupt):
			k.log.Warn("corrupt pin replaced by the owner", "room", ours.Room, "error", err)
			stands, err = k.pins.Repair(ctx, ours.Room, corrupt.Raw, ours.Pin)
		case err != nil:
			return pin.Pin{}, err
		case stands == ours.Pin:
			return stands, nil
		case stands.IsZero():
			return pin.Pin{}, fmt.Errorf("room %s: %w", ours.Room, errVanished)
		case stands.Fence.Less(ours.Pin.Fence) && !open:
			// Either the store lost the write of ours, or it forgot ours and somebody has opened the room
			// under a fence that happens to be lower. The edge finds out, by asking the owners.
			return pin.Pin{}, &pin.FencedError{Room: ours.Room, Current: stands}
		case stands.Fence.Less(ours.Pin.Fence):
			k.log.Warn("lower pin in the store replaced by the owner", "room", ours.Room, "fence", ours.Pin.Fence, "lower", stands.Fence)
			stands, err = k.pins.Swap(ctx, ours.Room, stands, ours.Pin)
		case open && stands.Fence.Fresh() && k.mayContest(ours):
			next := ours.Pin
			next.Fence = pin.Fence{Epoch: stands.Fence.Epoch + 1, Nonce: pin.NewNonce()}
			fresh := stands
			if stands, err = k.pins.Swap(ctx, ours.Room, fresh, next); err == nil && stands == next {
				k.log.Warn("fresh pin replaced by the owner: the store had forgotten ours", "room", ours.Room, "fence", ours.Pin.Fence,
					"fresh", fresh.Fence, "fresh_node", fresh.Node, "next", next.Fence)
				k.rooms.Outrank(ours.Room, next)
				return next, nil
			}
		default:
			k.log.Info("outranked", "room", ours.Room, "fence", ours.Pin.Fence, "by", stands.Node, "by_fence", stands.Fence)
			k.rooms.Outrank(ours.Room, stands)
			return pin.Pin{}, &pin.FencedError{Room: ours.Room, Current: stands}
		}
	}
	return pin.Pin{}, fmt.Errorf("room %s: %w", ours.Room, ErrContended)
}

// mayContest reports whether nobody can rightly have taken ours over: the store
// confirmed it within the life of a pin, this process has not paused since, and it is not alone.
func (k *Keeper) mayContest(ours pin.Holding) bool {
	k.mu.Lock()
	c, ok := k.confirmed[ours.Room]
	k.mu.Unlock()
	return ok && c.pin == ours.Pin && time.Since(c.at) < contestFor && (k.cfg.Majority == nil || k.cfg.Majority())
}

// start marks the beginning of a question to the store.
func (k *Keeper) start() (began time.Time, pauses uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Now(), k.pauses
}

// confirm remembers that the store had our pin at began, unless a pause was noticed since.
func (k *Keeper) confirm(h pin.Holding, began time.Time, pauses uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if pauses == k.pauses {
		k.confirmed[h.Room] = confirmation{pin: h.Pin, at: began}
	}
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

// dropOpening forgets a room that is not going to open.
func (k *Keeper) dropOpening(room ring.RoomID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.opening, room)
}

// setAsserted says in which generations all our pins stand.
func (k *Keeper) setAsserted(in pin.Generations) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asserted = in
}

// forget drops the confirmations that have lapsed of rooms that are not held, which bounds
// the tables by the rooms held and the openings of 15 s. It returns what is held, and after it what
// is being opened.
func (k *Keeper) forget(open []pin.Holding) []pin.Holding {
	names := make(map[ring.RoomID]struct{}, len(open))
	for _, h := range open {
		names[h.Room] = struct{}{}
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
		if time.Since(c.at) >= confirmedFor {
			delete(k.opening, room)
		} else if _, ok := names[room]; !ok {
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
