package pinowner

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
	errVanished = errors.New("the pin vanished while it was being confirmed")
	// errDamaged means that the stored text is no pin. It may hide a higher one.
	errDamaged = errors.New("the pin is damaged")
	errPaused  = errors.New("this process was paused before the answer came")
)

// Confirm says whether the room may open, or take a new peer, under the pin p. It must be called before either. It
// renews the pin's life, and writes the pin of an open room again if the store has a lower one. If the store is
// silent, a gossip majority replaces it. The error is a *pin.FencedError (OpenRooms was told of the higher pin), or
// it wraps pin.ErrMissing (place the room again) or pin.ErrUnconfirmed.
func (own *Owner) Confirm(ctx context.Context, room ring.RoomID, p pin.Pin) error {
	own.noticePause()
	held := pin.Holding{Room: room, Pin: p}
	open := slices.Contains(own.rooms.Held(), held)
	if c := own.confirmation(room); open && c.pin == p && time.Since(c.at) < confirmedFor {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	if open {
		return own.orMajority(held, own.confirmOpen(ctx, held))
	}
	answer, stands := own.beginOpening(held), false
	// The opening ends after a panic, too.
	defer func() { answer(stands) }()
	err := own.orMajority(held, own.confirmOpening(ctx, held))
	if stands = err == nil; stands {
		own.recheckSoon()
	}
	return err
}

// orMajority turns a store's error into Confirm's, unless a gossip majority replaces the store. A majority never
// confirms a pin that is lower than one served here.
func (own *Owner) orMajority(held pin.Holding, err error) error {
	known := own.cache.Of(held.Room)
	switch {
	case err == nil, errors.Is(err, pin.ErrMissing), errors.Is(err, pin.ErrFenced):
		return err
	case errors.Is(err, pin.ErrLater):
		return fmt.Errorf("confirm room %s: %w: %w", held.Room, pin.ErrUnconfirmed, err)
	case errors.Is(err, errDamaged):
		return fmt.Errorf("%w: %w", pin.ErrMissing, err)
	case held.Pin.Fence.Less(known.Fence):
		return &pin.FencedError{Room: held.Room, Current: known}
	case own.trustsMajority():
		own.log.Info("pin taken as confirmed by a gossip majority", "room", held.Room, "fence", held.Pin.Fence, "error", err)
		own.mu.Lock()
		// The store may lack this pin.
		own.synced.distrust(errors.Is(err, pin.ErrUnreachable))
		own.mu.Unlock()
		own.cache.Note(held.Room, held.Pin)
		return nil
	default:
		return fmt.Errorf("confirm room %s: %w: %w", held.Room, pin.ErrUnconfirmed, err)
	}
}

// confirmOpen confirms the pin of an open room. It writes even if nothing is due, because a store that refuses writes
// may show an old pin.
func (own *Owner) confirmOpen(ctx context.Context, held pin.Holding) error {
	began, pauses := own.start()
	found, err := own.pins.Refresh(ctx, []pin.Holding{held}, always)
	if err != nil {
		return err
	}
	stands, err := own.resolve(ctx, held, found[0], true)
	if err != nil {
		return err
	}
	if !own.confirm(pin.Holding{Room: held.Room, Pin: stands}, began, pauses, found[0].Prolonged) {
		return errPaused
	}
	if stands != held.Pin {
		return &pin.FencedError{Room: held.Room, Current: stands}
	}
	return nil
}

// confirmOpening confirms the pin of a room that is not open yet. It prolongs the pin, so that the pin does not
// expire before the room has opened.
func (own *Owner) confirmOpening(ctx context.Context, held pin.Holding) error {
	if known := own.cache.Of(held.Room); held.Pin.Fence.Less(known.Fence) {
		// The store lost data. The signaling node will write a pin above both.
		return &pin.FencedError{Room: held.Room, Current: known}
	}
	began, pauses := own.start()
	stands, err := own.pins.Prolong(ctx, held.Room)
	switch {
	case errors.Is(err, pin.ErrCorrupt):
		return fmt.Errorf("room %s: %w: %w", held.Room, pin.ErrMissing, err)
	case err != nil:
		return err
	case stands == held.Pin && !own.confirm(held, began, pauses, true):
		return errPaused
	case stands == held.Pin:
		return nil
	case held.Pin.Fence.Less(stands.Fence):
		return own.fencedOpening(ctx, held, stands)
	default:
		return fmt.Errorf("room %s: %w", held.Room, pin.ErrMissing)
	}
}

func (own *Owner) fencedOpening(ctx context.Context, opening pin.Holding, higher pin.Pin) error {
	for _, ours := range own.rooms.Held() {
		if ours.Room != opening.Room {
			continue
		}
		stands, err := own.resolve(ctx, ours, pin.Found{Room: ours.Room, Stands: higher}, true)
		if fenced, ok := errors.AsType[*pin.FencedError](err); ok {
			stands = fenced.Current
		} else if err != nil {
			return err
		}
		if !opening.Pin.Fence.Less(stands.Fence) {
			return fmt.Errorf("room %s: %w", opening.Room, pin.ErrMissing)
		}
		return &pin.FencedError{Room: opening.Room, Current: stands}
	}
	return own.fence(opening, higher)
}

func (own *Owner) fence(ours pin.Holding, to pin.Pin) error {
	own.log.Info("fenced", "room", ours.Room, "fence", ours.Pin.Fence, "by", to.Node, "by_fence", to.Fence)
	own.rooms.Fence(ours.Room, to)
	own.dropOpening(ours)
	return &pin.FencedError{Room: ours.Room, Current: to}
}

func (own *Owner) start() (began time.Time, pauses uint64) {
	own.mu.Lock()
	defer own.mu.Unlock()
	return time.Now(), own.pauses
}

// confirm notes a confirmation. It returns false if this process was paused since the question, because the answer
// may be old.
func (own *Owner) confirm(h pin.Holding, began time.Time, pauses uint64, prolonged bool) bool {
	own.noticePause()
	own.mu.Lock()
	defer own.mu.Unlock()
	if pauses != own.pauses {
		return false
	}
	// A late answer must not undo a higher pin's confirmation.
	if c, ok := own.confirmed[h.Room]; !ok || !h.Pin.Fence.Less(c.pin.Fence) {
		c.pin, c.at = h.Pin, began
		if prolonged {
			c.prolonged = began
		}
		own.confirmed[h.Room] = c
	}
	own.cache.Note(h.Room, h.Pin)
	return true
}

func (own *Owner) confirmation(room ring.RoomID) confirmation {
	own.mu.Lock()
	defer own.mu.Unlock()
	return own.confirmed[room]
}

func (own *Owner) trustsMajority() bool {
	if own.cfg.Majority == nil {
		return false
	}
	own.mu.Lock()
	rests := !own.paused.IsZero() && time.Since(own.paused) < majorityRestsFor || time.Since(own.synced.all) < silentFor
	own.mu.Unlock()
	return !rests && own.cfg.Majority()
}
