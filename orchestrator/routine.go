package orchestrator

import (
	"context"
	"errors"
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
		case !now.Before(plan.refresh), !now.Before(plan.look) && k.looks(ctx, failing):
			err := k.refresh(ctx)
			if ctx.Err() != nil {
				return nil
			}
			if (err != nil) != failing { // One line per change, not one per failure.
				failing = err != nil
				k.log.Warn("refresh of pins", "failing", failing, "error", err)
			}
			k.refreshed(errors.Is(err, errAway))
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
func (k *Keeper) refreshed(away bool) {
	// A tenth more or less, so that the nodes of a cluster do not refresh in step. It is taken from the source of
	// nonces: a test that knows those has the whole schedule.
	wait := time.Duration(float64(k.cfg.RefreshEvery) * (0.9 + 0.2*float64(pin.NewNonce())/(1<<63)))
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if now.Before(k.restless) {
		wait = min(wait, lookEvery)
	}
	k.plan.refresh = now.Add(wait)
	k.planLook(away)
}

// planLook plans the next look at the store's memory. Call it with mu held.
func (k *Keeper) planLook(away bool) {
	k.plan.look = time.Now().Add(lookEvery)
	if away {
		k.plan.look = time.Now().Add(retryEvery)
	}
}

// hurry wakes Run up for a new agenda.
func (k *Keeper) hurry() {
	select {
	case k.kick <- struct{}{}:
	default:
	}
}

// looks reads the generations, and reports whether a refresh is due now: the store has lost the memory in which all pins of this node
// were asserted last, or it answers and the last refresh failed.
func (k *Keeper) looks(ctx context.Context, failing bool) bool {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	began := time.Now()
	present, err := k.pins.Generations(ctx)
	same := err == nil && !failing && pin.GenerationsOf(present) == k.Asserted()
	if same {
		k.hear(began)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.planLook(err != nil)
	return err == nil && !same
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
