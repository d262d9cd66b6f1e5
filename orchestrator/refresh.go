package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// errAway: no master of the store is there that takes writes.
var errAway = errors.New("the store is away, or refuses writes")

// refresh checks the pins of all rooms held, and those of the rooms that are being opened, and prolongs those that are due.
// When none of them is in doubt afterwards, all are asserted in the generations that
// were read before: a room that opens later is confirmed before it does. Where some masters are not known to take writes,
// all pins are prolonged: a pin that can be read may be an old one, left on a master that was cut off.
func (k *Keeper) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	generations, unknown := k.pins.Generations(ctx)
	if unknown != nil && len(generations) == 0 {
		return fmt.Errorf("%w: %w", errAway, unknown)
	}
	now, due := time.Now(), always
	if unknown == nil {
		due = k.isDue
	}
	open := k.rooms.Held()
	faults, err := k.check(ctx, k.forget(open, now), len(open), due)
	if err != nil {
		return err
	}
	if unknown == nil {
		k.noticeGeneration(pin.GenerationsOf(generations), now)
	}
	if len(faults) == 0 && unknown == nil {
		k.setAsserted(pin.GenerationsOf(generations))
		k.hear(now)
	}
	return errors.Join(append(faults, unknown)...)
}

// noticeGeneration has the pins refreshed more often for a while when the store has begun another memory: other owners put
// theirs back over fresh claims now, and who is outranked by that should not go on with it until its next ordinary refresh.
func (k *Keeper) noticeGeneration(in pin.Generations, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if in != k.asserted {
		k.restless = at.Add(k.cfg.RefreshEvery)
	}
}

// recheckSoon plans a look at a room that is about to open.
func (k *Keeper) recheckSoon() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.plan.recheck.IsZero() {
		k.plan.recheck = time.Now().Add(recheckAfter)
		k.hurry()
	}
}

// recheck looks at the rooms that opened a moment ago: Confirm and the opening are two steps. What it
// cannot learn the next refresh does.
func (k *Keeper) recheck(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	k.mu.Lock()
	k.plan.recheck = time.Time{} // What opens from here on has a look of its own.
	k.mu.Unlock()
	now := time.Now()
	open := k.rooms.Held()
	young := slices.DeleteFunc(slices.Clone(open), func(h pin.Holding) bool { return !k.isOpening(h) })
	k.forget(open, now)
	if faults, err := k.check(ctx, young, len(young), k.isDue); err != nil || len(faults) > 0 {
		k.log.Debug("rooms that opened not checked", "error", errors.Join(append(faults, err)...))
	}
}

// always has every pin prolonged.
func always(pin.Holding) bool { return true }

// isDue reports whether a pin is to be prolonged: once in ProlongEvery, at a moment that its nonce says, so that the pins of rooms that
// opened together are not prolonged together.
func (k *Keeper) isDue(h pin.Holding) bool {
	k.mu.Lock()
	c := k.confirmed[h.Room]
	k.mu.Unlock()
	every, now := k.cfg.ProlongEvery, time.Now()
	turn := func(at time.Time) int64 {
		return (at.UnixNano() + int64(h.Pin.Fence.Nonce%uint64(every))) / int64(every)
	}
	return elapsed(c.prolonged, now) >= every || turn(now) != turn(c.prolonged)
}

// check checks pins, the first of them of rooms that are open here, prolongs those that are due, and says which are in doubt.
func (k *Keeper) check(ctx context.Context, held []pin.Holding, open int, due func(pin.Holding) bool) (faults []error, err error) {
	if len(held) == 0 {
		return nil, nil
	}
	began, pauses := k.start()
	found, err := k.pins.Refresh(ctx, held, due)
	if err != nil {
		return nil, err
	}
	for i, f := range found {
		stands, err := k.judge(ctx, held[i], f, i < open)
		switch {
		case err == nil && i < open:
			_ = k.confirm(pin.Holding{Room: held[i].Room, Pin: stands}, began, pauses, f.Prolonged)
		case err == nil: // Confirm says when this one was confirmed.
		case errors.Is(err, pin.ErrFenced): // The Holder has been told; nothing failed.
		case errors.Is(err, errDamaged): // Nobody can claim a key that is damaged.
			k.log.Warn("corrupt pin", "room", held[i].Room, "error", err)
		case len(faults) < 3: // One store, one reason: three say it well enough.
			faults = append(faults, err)
		}
	}
	return faults, nil
}

// judge ends in a store that holds a pin of ours (returned) or a higher one of another (*pin.FencedError, the
// Holder told), or in not knowing. A lower pin is a lost write: it is replaced by ours, while the room is open here. A
// fresh pin where ours stood was claimed by somebody
// who could not know of us, because the store forgot, and so was one of our epoch moved: while the room is open here, it is replaced by
// a new pin of ours above it.
func (k *Keeper) judge(ctx context.Context, ours pin.Holding, f pin.Found, open bool) (pin.Pin, error) {
	stands, err := f.Stands, f.Err
	if f.Asserted {
		k.log.Info("missing pin written again", "room", ours.Room, "fence", ours.Pin.Fence)
	}
	for range maxSteps {
		switch {
		case errors.Is(err, pin.ErrCorrupt):
			return pin.Pin{}, fmt.Errorf("%w: %w", errDamaged, err)
		case err != nil:
			return pin.Pin{}, err
		case stands == ours.Pin:
			return stands, nil
		case stands.IsZero():
			return pin.Pin{}, fmt.Errorf("room %s: %w", ours.Room, errVanished)
		case stands.Fence.Less(ours.Pin.Fence) && !open:
			// Either the store lost the write of ours, or it forgot ours and somebody has opened the room
			// under a fence that happens to be lower. The edge finds out, by asking the owners.
			return pin.Pin{}, fmt.Errorf("room %s: %w", ours.Room, pin.ErrMissing)
		case stands.Fence.Less(ours.Pin.Fence):
			k.log.Warn("lower pin in the store replaced by the owner", "room", ours.Room, "fence", ours.Pin.Fence, "lower", stands.Fence)
			stands, _, err = k.pins.Swap(ctx, ours.Room, stands, ours.Pin)
		case open && ignores(stands.Fence, ours.Pin.Fence) && k.mayContest(ours):
			next, fresh := ours.Pin, stands
			next.Fence = pin.Fence{Epoch: stands.Fence.Epoch + 1, Nonce: pin.NewNonce()}
			if stands, _, err = k.pins.Swap(ctx, ours.Room, fresh, next); err == nil && stands == next {
				k.log.Warn("fresh pin replaced by the owner: the store had forgotten ours", "room", ours.Room, "fence", ours.Pin.Fence,
					"fresh", fresh.Fence, "fresh_node", fresh.Node, "next", next.Fence)
				k.rooms.Outrank(ours.Room, next)
				return next, nil
			}
		case open && stands.Boot == ours.Pin.Boot: // An edge gave the room a higher pin here, and the store has it.
			_ = k.yield(ours, stands)
			return stands, nil
		default:
			return pin.Pin{}, k.yield(ours, stands)
		}
	}
	return pin.Pin{}, fmt.Errorf("room %s: %w", ours.Room, ErrContended)
}

// mayContest reports whether nobody can rightly have taken ours over: the store
// prolonged it within the life of a pin, this process has not paused since, and it is not alone.
func (k *Keeper) mayContest(ours pin.Holding) bool {
	k.mu.Lock()
	c, ok := k.confirmed[ours.Room]
	k.mu.Unlock()
	return ok && c.pin == ours.Pin && elapsed(c.prolonged, time.Now()) < contestFor && (k.cfg.Majority == nil || k.cfg.Majority())
}
