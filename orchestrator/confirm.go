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
	// errVanished: the next refresh syncs the pin.
	errVanished = errors.New("the pin vanished while it was being confirmed")
	// errDamaged: the damage may hide a higher pin, so the owner leaves it to a signaling node, which asks all owners.
	errDamaged = errors.New("the pin is damaged")
	errPaused  = errors.New("this process was paused before the answer came")
)

// Confirm returns nil when p stands for room: the room is open here and p was confirmed in the last 15 s, or
// the store says so now, or the store has been silent for 3 s while this node sees a gossip majority.
// Otherwise the error is a *pin.FencedError (the Holder has been told), or wraps pin.ErrMissing (the room must
// be placed again) or pin.ErrUnconfirmed. Call it before opening a room and before taking a new peer.
func (k *Keeper) Confirm(ctx context.Context, room ring.RoomID, p pin.Pin) error {
	k.noticePause()
	held := pin.Holding{Room: room, Pin: p}
	open := slices.Contains(k.rooms.Held(), held)
	if c := k.confirmation(room); open && c.pin == p && time.Since(c.at) < confirmedFor {
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

// unlessTrusted turns the store's error into that of Confirm. A majority may stand in for a silent store, but not for a
// pin below one that was served here.
func (k *Keeper) unlessTrusted(held pin.Holding, err error) error {
	known := k.seen.of(held.Room)
	switch {
	case err == nil, errors.Is(err, pin.ErrMissing), errors.Is(err, pin.ErrFenced):
		return err
	case errors.Is(err, errDamaged): // Placing the room again repairs it.
		return fmt.Errorf("%w: %w", pin.ErrMissing, err)
	case held.Pin.Fence.Less(known.Fence):
		return &pin.FencedError{Room: held.Room, Current: known}
	case k.trustsMajority():
		k.log.Info("pin taken as confirmed by a gossip majority", "room", held.Room, "fence", held.Pin.Fence, "error", err)
		k.mu.Lock()
		k.synced = "" // The store may not have this pin until the next refresh.
		k.mu.Unlock()
		k.seen.note(held.Room, held.Pin)
		return nil
	default:
		return fmt.Errorf("confirm room %s: %w: %w", held.Room, pin.ErrUnconfirmed, err)
	}
}

// confirmOpen asks the store about a room that is open here. It writes, because a store that refuses writes
// may show an old pin.
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
	if stands != held.Pin { // A new pin of ours: the signaling node must ask for that one.
		return &pin.FencedError{Room: held.Room, Current: stands}
	}
	return nil
}

// confirmOpening asks the store about a room that is not open here: another node may have opened it since an earlier
// confirmation. It prolongs the pin, which must not expire while the room opens. When the pin is missing, the
// signaling node must claim it and ask the owners.
func (k *Keeper) confirmOpening(ctx context.Context, held pin.Holding) error {
	if known := k.seen.of(held.Room); held.Pin.Fence.Less(known.Fence) {
		// The store went back behind what was open here. The signaling node moves the pin above both.
		return &pin.FencedError{Room: held.Room, Current: known}
	}
	began, pauses := k.start()
	stands, err := k.pins.Prolong(ctx, held.Room)
	switch {
	case errors.Is(err, pin.ErrCorrupt):
		return fmt.Errorf("room %s: %w: %w", held.Room, pin.ErrMissing, err)
	case err != nil:
		return err
	case stands == held.Pin && !k.confirm(held, began, pauses, true):
		return errPaused
	case stands == held.Pin:
		return nil
	case held.Pin.Fence.Less(stands.Fence):
		return k.fenced(ctx, held, stands)
	default: // Nothing, or a lower pin.
		return fmt.Errorf("room %s: %w", held.Room, pin.ErrMissing)
	}
}

// fenced ends an opening under a pin that a higher one has replaced. When the room is already open here under another
// pin, the higher one is judged as by a refresh: the room stays here if the store only forgot it.
func (k *Keeper) fenced(ctx context.Context, opening pin.Holding, higher pin.Pin) error {
	for _, ours := range k.rooms.Held() {
		if ours.Room != opening.Room {
			continue
		}
		stands, err := k.judge(ctx, ours, pin.Found{Room: ours.Room, Stands: higher}, true)
		if fenced, ok := errors.AsType[*pin.FencedError](err); ok {
			stands = fenced.Current
		} else if err != nil {
			return err
		}
		if !opening.Pin.Fence.Less(stands.Fence) { // The store lost data again, and was told of ours meanwhile.
			return fmt.Errorf("room %s: %w", opening.Room, pin.ErrMissing)
		}
		return &pin.FencedError{Room: opening.Room, Current: stands}
	}
	return k.yield(opening, higher)
}

// yield tells the Holder that ours is fenced.
func (k *Keeper) yield(ours pin.Holding, to pin.Pin) error {
	k.log.Info("outranked", "room", ours.Room, "fence", ours.Pin.Fence, "by", to.Node, "by_fence", to.Fence)
	k.rooms.Outrank(ours.Room, to)
	k.dropOpening(ours)
	return &pin.FencedError{Room: ours.Room, Current: to}
}

// start returns what confirm needs to know of the moment at which the store is asked.
func (k *Keeper) start() (began time.Time, pauses uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return time.Now(), k.pauses
}

// confirm notes that the store had our pin at began. It reports false when this process was paused since.
func (k *Keeper) confirm(h pin.Holding, began time.Time, pauses uint64, prolonged bool) bool {
	k.noticePause()
	k.mu.Lock()
	defer k.mu.Unlock()
	if pauses != k.pauses {
		return false
	}
	// A slow refresh may answer for a lower pin of ours. The higher one stays confirmed, or it could not be reclaimed.
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

// confirmation returns the last confirmation of room, zero when there is none.
func (k *Keeper) confirmation(room ring.RoomID) confirmation {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.confirmed[room]
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
