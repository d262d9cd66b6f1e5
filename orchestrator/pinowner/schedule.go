package pinowner

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/orchestrator/pincache"
	"github.com/holdfast-rtc/holdfast/pin"
)

type schedule struct {
	refresh time.Time
	// recheck is zero if no room has opened since the last one.
	recheck time.Time
	check   time.Time
}

func (s schedule) next() time.Time {
	first := s.refresh
	for _, at := range []time.Time{s.recheck, s.check} {
		if !at.IsZero() && at.Before(first) {
			first = at
		}
	}
	return first
}

// Run refreshes the pins until ctx ends, and returns nil.
func (own *Owner) Run(ctx context.Context) error {
	var watch sync.WaitGroup
	watch.Go(func() { own.watchPauses(ctx) })
	defer watch.Wait()
	failing := false
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-own.kick:
		}
		if own.cfg.Panics.Catch(own.log, "a refresh of pins broke", func() { failing = own.round(ctx, failing) }) {
			own.refreshed(true)
		}
		timer.Reset(time.Until(own.planned().next()))
	}
}

func (own *Owner) round(ctx context.Context, failing bool) bool {
	now, plan := time.Now(), own.planned()
	switch {
	case !now.Before(plan.refresh), !now.Before(plan.check) && own.incarnationsChanged(ctx, failing):
		err := own.Refresh(ctx)
		if ctx.Err() != nil {
			return failing
		}
		if (err != nil) != failing {
			failing = err != nil
			own.log.Warn("refresh of pins", "failing", failing, "error", err)
		}
		own.refreshed(errors.Is(err, errAway))
	case !plan.recheck.IsZero() && !now.Before(plan.recheck):
		own.recheck(ctx)
	}
	return failing
}

func (own *Owner) planned() schedule {
	own.mu.Lock()
	defer own.mu.Unlock()
	return own.plan
}

func (own *Owner) refreshed(away bool) {
	// The jitter comes from a nonce, because tests can repeat nonces.
	wait := time.Duration(float64(own.cfg.RefreshEvery) * (0.9 + 0.2*float64(pin.NewNonce())/(1<<63)))
	own.mu.Lock()
	defer own.mu.Unlock()
	now := time.Now()
	if now.Before(own.fastUntil) {
		wait = min(wait, checkEvery)
	}
	own.plan.refresh = now.Add(wait)
	own.planCheck(away || own.adopting)
}

// planCheck sets when the incarnations are read next. The caller holds mu.
func (own *Owner) planCheck(soon bool) {
	own.plan.check = time.Now().Add(checkEvery)
	if soon {
		own.plan.check = time.Now().Add(retryEvery)
	}
}

func (own *Owner) wake() {
	select {
	case own.kick <- struct{}{}:
	default:
	}
}

func (own *Owner) incarnationsChanged(ctx context.Context, failing bool) bool {
	began := time.Now()
	answered, err := own.incarnations(ctx)
	own.mu.Lock()
	defer own.mu.Unlock()
	same := own.synced.answer(answered, began, err == nil) && !failing
	own.planCheck(err != nil)
	return err == nil && !same
}

// watchPauses notices pauses of this process in a goroutine of its own, because a refresh may wait for longer than a
// pause lasts.
func (own *Owner) watchPauses(ctx context.Context) {
	check := func() { own.cfg.Panics.Catch(own.log, "a look for a pause broke", own.noticePause) }
	check()
	backoff.Every(ctx, heartbeatEvery, check)
}

func (own *Owner) noticePause() {
	now := time.Now()
	own.mu.Lock()
	defer own.mu.Unlock()
	gap := pincache.Elapsed(own.heartbeat, now)
	first := own.heartbeat.IsZero()
	own.heartbeat = now
	if first || gap <= pauseGap {
		return
	}
	clear(own.confirmed)
	own.paused = now
	own.pauses++
	own.plan.refresh = now
	own.wake()
	own.log.Warn("this process was paused, every pin must be confirmed again", "gap_ms", gap.Milliseconds())
}
