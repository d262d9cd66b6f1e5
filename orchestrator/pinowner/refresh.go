package pinowner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/orchestrator/pincache"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

var (
	errAway      = errors.New("the store is away, or refuses writes")
	errContended = errors.New("the pin keeps moving")
	errAdopting  = errors.New("a room has not adopted its higher pin yet, and its roster can only be written under that")
)

const maxSteps = 4

// Refresh checks the pins of all open rooms. If some master may refuse writes, it writes to all of them: a master
// that is cut off shows old pins to readers.
func (own *Owner) Refresh(ctx context.Context) error {
	own.mu.Lock()
	own.synced.clean = false
	own.mu.Unlock()
	answered, unknown := own.incarnations(ctx)
	if answered == "" && unknown != nil {
		return fmt.Errorf("%w: %w", errAway, unknown)
	}
	now, due := time.Now(), always
	if unknown == nil {
		due = own.isDue
	}
	open := own.rooms.Held()
	own.prune(open, now)
	faults, err := own.checkAll(ctx, open, due, unknown != nil)
	if err != nil {
		return err
	}
	if own.lacks(answered, now, unknown == nil) {
		if err := own.cfg.Rosters.Rewrite(ctx); err != nil && (unknown == nil || !errors.Is(err, pin.ErrUnreachable)) {
			faults = append(faults, err)
		}
	}
	own.mu.Lock()
	own.synced.refreshed(answered, now, unknown == nil, len(faults) == 0)
	own.adopting = slices.ContainsFunc(faults, isAdopting)
	own.mu.Unlock()
	// An adoption that is under way is no failure of the refresh.
	faults = slices.DeleteFunc(faults, isAdopting)
	return errors.Join(append(faults, unknown)...)
}

func (own *Owner) incarnations(ctx context.Context) (pin.Incarnations, error) {
	ctx, cancel := context.WithTimeout(ctx, incarnationsTimeout)
	defer cancel()
	all, err := own.pins.Incarnations(ctx)
	return pin.IncarnationsOf(all), err
}

func (own *Owner) checkAll(ctx context.Context, open []pin.Holding, due func(pin.Holding) bool, partial bool) (faults []error, err error) {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	return own.check(ctx, own.withOpenings(open), len(open), due, partial)
}

func (own *Owner) lacks(answered pin.Incarnations, at time.Time, all bool) bool {
	own.mu.Lock()
	defer own.mu.Unlock()
	lacks := own.synced.lacks(answered, all)
	if lacks {
		// After a loss of data, refresh faster, so that fenced owners stop sooner.
		own.fastUntil = at.Add(own.cfg.RefreshEvery)
	}
	return lacks
}

func (own *Owner) recheckSoon() {
	own.mu.Lock()
	defer own.mu.Unlock()
	if own.plan.recheck.IsZero() {
		own.plan.recheck = time.Now().Add(recheckAfter)
		own.wake()
	}
}

// recheck reads the pins of the rooms that have just opened, because a pin may have moved while its room opened.
func (own *Owner) recheck(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	own.mu.Lock()
	own.plan.recheck = time.Time{}
	own.mu.Unlock()
	now, open := time.Now(), own.rooms.Held()
	young := slices.DeleteFunc(slices.Clone(open), func(h pin.Holding) bool { return !own.isOpening(h) })
	own.prune(open, now)
	if faults, err := own.check(ctx, young, len(young), own.isDue, false); err != nil || len(faults) > 0 {
		own.log.Debug("rooms that opened not checked", "error", errors.Join(append(faults, err)...))
	}
}

func isAdopting(err error) bool { return errors.Is(err, errAdopting) }

func always(pin.Holding) bool { return true }

// isDue reports whether the pin's life is to be renewed. The pin's nonce shifts the moment, so that the renewals of
// many pins are spread over ProlongEvery.
func (own *Owner) isDue(h pin.Holding) bool {
	c, every, now := own.confirmation(h.Room), own.cfg.ProlongEvery, time.Now()
	period := func(at time.Time) int64 {
		return (at.UnixNano() + int64(h.Pin.Fence.Nonce%uint64(every))) / int64(every)
	}
	return pincache.Elapsed(c.prolonged, now) >= every || period(now) != period(c.prolonged)
}

// check compares the pins of held with the store's. The first rooms of held, as many as open says, are open; the
// others are about to open. After an error nothing was learned. With partial, a pin that lies on an unreachable master
// is no fault, because the node will not report the incarnation of that master.
func (own *Owner) check(ctx context.Context, held []pin.Holding, open int, due func(pin.Holding) bool, partial bool) (faults []error, err error) {
	if len(held) == 0 {
		return nil, nil
	}
	began, pauses := own.start()
	found, err := own.pins.Refresh(ctx, held, due)
	if err != nil {
		return nil, err
	}
	for i, f := range found {
		stands, err := own.resolve(ctx, held[i], f, i < open)
		switch {
		case err == nil && i < open:
			_ = own.confirm(pin.Holding{Room: held[i].Room, Pin: stands}, began, pauses, f.Prolonged)
			switch {
			case f.Rewritten || f.Stands != held[i].Pin:
				own.cfg.Rosters.Renew(held[i].Room)
			case f.Prolonged:
				own.cfg.Rosters.Prolong(held[i].Room)
			}
			// The store takes a roster only under the pin that stands, and the room learns of that pin later, in its own loop.
			// Until then the store may not know who is in the room, so the node is not synced.
			if stands != held[i].Pin && len(faults) < 3 {
				faults = append(faults, fmt.Errorf("room %s: %w", held[i].Room, errAdopting))
			}
		case err == nil:
		case errors.Is(err, pin.ErrFenced): // OpenRooms was told.
		case errors.Is(err, errDamaged):
			own.log.Warn("corrupt pin", "room", held[i].Room, "error", err)
		case errors.Is(err, pin.ErrLater):
			own.logLater(held[i].Room, err)
		case partial && errors.Is(err, pin.ErrUnreachable):
		case len(faults) < 3:
			faults = append(faults, err)
		}
	}
	return faults, nil
}

// resolve ends a difference between an open room's pin and the store's. It replaces a lower pin, and reclaims the
// room from a pin that was made without knowledge of ours. It returns the pin that is current afterwards. After a
// *pin.FencedError OpenRooms was told of the higher pin; any other error leaves the current pin unknown.
func (own *Owner) resolve(ctx context.Context, ours pin.Holding, f pin.Found, open bool) (pin.Pin, error) {
	stands, err := f.Stands, f.Err
	if f.Rewritten {
		own.log.Info("missing pin written again", "room", ours.Room, "fence", ours.Pin.Fence)
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
			// The store lost our pin, or the room was opened elsewhere. The signaling node asks the owners which it
			// is.
			return pin.Pin{}, fmt.Errorf("room %s: %w", ours.Room, pin.ErrMissing)
		case stands.Fence.Less(ours.Pin.Fence):
			own.log.Warn("lower pin in the store replaced by the owner", "room", ours.Room, "fence", ours.Pin.Fence, "lower", stands.Fence)
			stands, _, err = own.pins.Swap(ctx, ours.Room, stands, ours.Pin, "its owner wrote its own pin again")
		case open && stands.Fence.Ignores(ours.Pin.Fence) && own.mayReclaim(ours):
			next, fresh := ours.Pin, stands
			next.Fence = pin.Fence{Epoch: stands.Fence.Epoch + 1, Nonce: pin.NewNonce()}
			if stands, _, err = own.pins.Swap(ctx, ours.Room, fresh, next, "its owner has it open, and took it back from a fresh claim"); err == nil && stands == next {
				own.log.Warn("fresh pin replaced by the owner: the store had forgotten ours", "room", ours.Room, "fence", ours.Pin.Fence,
					"fresh", fresh.Fence, "fresh_node", fresh.Node, "next", next.Fence)
				own.rooms.Fence(ours.Room, next)
				return next, nil
			}
		case open && stands.Boot == ours.Pin.Boot:
			_ = own.fence(ours, stands)
			return stands, nil
		default:
			return pin.Pin{}, own.fence(ours, stands)
		}
	}
	return pin.Pin{}, fmt.Errorf("room %s: %w", ours.Room, errContended)
}

// mayReclaim reports whether nobody can have moved the room with good reason: its pin was confirmed within a pin's
// life, and this node sees a gossip majority.
func (own *Owner) mayReclaim(ours pin.Holding) bool {
	c := own.confirmation(ours.Room)
	return c.pin == ours.Pin && pincache.Elapsed(c.prolonged, time.Now()) < reclaimFor && (own.cfg.Majority == nil || own.cfg.Majority())
}

func (own *Owner) logLater(room ring.RoomID, err error) {
	if unlogged, ok := own.laterLogs.Next(); ok {
		own.log.Warn("pin of a newer node left alone: this node keeps the room open, and takes nobody new in it", "room", room, "error", err, "unlogged", unlogged)
	}
}
