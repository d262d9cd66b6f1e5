package orchestrator

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// This file is what a Keeper does when: its periodic work, and what wakes it up.

// agenda is when Run does what next. Zero is never.
type agenda struct {
	refresh time.Time
	recheck time.Time // of the rooms that opened a moment ago
	look    time.Time // whether the store has lost its memory
}

// next is the first instant of the agenda.
func (a agenda) next() time.Time {
	first := a.refresh
	for _, at := range []time.Time{a.recheck, a.look} {
		if !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first
}

// Run refreshes the pins until ctx ends, and at once after a pause of the process or when the store
// has lost its memory. It returns nil.
func (k *Keeper) Run(ctx context.Context) error {
	var watch sync.WaitGroup
	watch.Go(func() { k.watchPauses(ctx) })
	defer watch.Wait()
	failing := false
	timer := time.NewTimer(0) // The first refresh is due now: rooms may have been opened before Run.
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-k.kick:
		}
		now, plan := time.Now(), k.planned()
		switch {
		case !now.Before(plan.refresh), !now.Before(plan.look) && !failing && !k.remembers(ctx):
			err := k.refresh(ctx)
			if ctx.Err() != nil {
				return nil
			}
			if (err != nil) != failing { // One line per change, not one per failure.
				failing = err != nil
				k.log.Warn("refresh of pins", "failing", failing, "error", err)
			}
			k.refreshed(failing)
		case !now.Before(plan.look):
			k.looked()
		case !plan.recheck.IsZero() && !now.Before(plan.recheck):
			k.recheck(ctx)
		}
		timer.Reset(time.Until(k.planned().next()))
	}
}

// planned returns the agenda.
func (k *Keeper) planned() agenda {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.plan
}

// refreshed plans what comes after a refresh.
func (k *Keeper) refreshed(failed bool) {
	wait := retryEvery
	if !failed {
		// A tenth more or less, so that the nodes of a cluster do not refresh in step. It is taken from the source of
		// nonces: a test that knows those has the whole schedule.
		wait = time.Duration(float64(k.cfg.RefreshEvery) * (0.9 + 0.2*float64(pin.NewNonce())/(1<<63)))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if now.Before(k.restless) {
		wait = min(wait, lookEvery)
	}
	k.plan.refresh, k.plan.look = now.Add(wait), now.Add(lookEvery)
}

// looked plans the next look at the store's memory.
func (k *Keeper) looked() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.plan.look = time.Now().Add(lookEvery)
}

// hurry wakes Run up for a new agenda.
func (k *Keeper) hurry() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// remembers reports whether the store has the memory in which all pins of this node were asserted last.
func (k *Keeper) remembers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	present, err := k.pins.Generations(ctx)
	k.hear(err)
	return err == nil && pin.GenerationsOf(present) == k.Asserted()
}

// watchPauses notices when this process was not running. It is apart from the refresh, which
// may wait for the store for longer than a pause is.
func (k *Keeper) watchPauses(ctx context.Context) {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		k.noticePause()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// elapsed is the time between two moments by the clock that says more: the monotonic one stands still while a machine is
// suspended, and the other may be set.
func elapsed(from, to time.Time) time.Duration {
	return max(to.Sub(from), to.Round(0).Sub(from.Round(0)))
}

// noticePause takes all confirmations back when the time since the last beat shows a pause.
func (k *Keeper) noticePause() {
	now := time.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	gap := elapsed(k.beat, now)
	first := k.beat.IsZero()
	k.beat = now
	if first || gap <= pauseGap {
		return
	}
	clear(k.confirmed)
	k.paused = now
	k.pauses++
	k.plan.refresh = now
	k.hurry()
	k.log.Warn("this process was paused, every pin must be confirmed again", "gap_ms", gap.Milliseconds())
}
