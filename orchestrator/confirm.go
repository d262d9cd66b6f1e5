package orchestrator

import (
	"context"
	"errors"
	"fmt"
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
	if k.isConfirmed(room, p) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	held := []pin.Holding{{Room: room, Pin: p}}
	began, pauses := k.start()
	found, err := k.pins.Refresh(ctx, held)
	if err == nil {
		err = k.judge(ctx, held[0], found[0])
	}
	var fenced *pin.FencedError
	switch {
	case err == nil:
		k.confirm(held[0], began, pauses)
		return nil
	case errors.As(err, &fenced):
		return err
	case k.trustsMajority():
		k.log.Info("pin taken as confirmed by a gossip majority", "room", room, "fence", p.Fence, "error", err)
		return nil
	default:
		return fmt.Errorf("confirm room %s: %w: %w", room, pin.ErrUnconfirmed, err)
	}
}

// refresh prolongs and checks the pins of all rooms held.
func (k *Keeper) refresh(ctx context.Context) error {
	held := k.rooms.Held()
	k.forget(held)
	if len(held) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	began, pauses := k.start()
	found, err := k.pins.Refresh(ctx, held)
	if err != nil {
		return err
	}
	var faults []error
	for i, f := range found {
		err := k.judge(ctx, held[i], f)
		var fenced *pin.FencedError
		switch {
		case err == nil:
			k.confirm(held[i], began, pauses)
		case errors.As(err, &fenced): // The Holder has been told; nothing failed.
		case len(faults) < 3: // One store, one reason: three say it well enough.
			faults = append(faults, err)
		}
	}
	return errors.Join(faults...)
}

// judge ends in a store that holds our pin (nil) or a higher one (*pin.FencedError, the
// Holder told), or in not knowing. A lower pin is a lost write, and a text that is no
// pin is damage: both are replaced by ours.
func (k *Keeper) judge(ctx context.Context, ours pin.Holding, f pin.Found) error {
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
			return err
		case stands == ours.Pin:
			return nil
		case stands.IsZero():
			return fmt.Errorf("room %s: %w", ours.Room, errVanished)
		case ours.Pin.Fence.Less(stands.Fence):
			k.log.Info("outranked", "room", ours.Room, "fence", ours.Pin.Fence, "by", stands.Node, "by_fence", stands.Fence)
			k.rooms.Outrank(ours.Room, stands)
			return &pin.FencedError{Room: ours.Room, Current: stands}
		default:
			k.log.Warn("lower pin in the store replaced by the owner", "room", ours.Room, "fence", ours.Pin.Fence, "lower", stands.Fence)
			stands, err = k.pins.Swap(ctx, ours.Room, stands, ours.Pin)
		}
	}
	return fmt.Errorf("room %s: %w", ours.Room, ErrContended)
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

// forget drops the confirmations that have lapsed of rooms that are not held, which bounds
// the table by the rooms held and the openings of 15 s.
func (k *Keeper) forget(held []pin.Holding) {
	open := make(map[ring.RoomID]struct{}, len(held))
	for _, h := range held {
		open[h.Room] = struct{}{}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for room, c := range k.confirmed {
		if _, ok := open[room]; !ok && time.Since(c.at) >= confirmedFor {
			delete(k.confirmed, room)
		}
	}
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
