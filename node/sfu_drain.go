package node

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/sfu"
)

const (
	drainEvery = 100 * time.Millisecond
	// drainLogEvery bounds the lines about progress.
	drainLogEvery = 2 * time.Second
	// storeAskedEvery also bounds how long one question to the store takes.
	storeAskedEvery = time.Second
	// storeAwaitedFor is how long a node that SIGTERM drains waits past its deadline for a silent store. With lingerFor and the time
	// that a goodbye takes, it fits into the 10 s that --drain-timeout promises between the deadline and the end of the process.
	storeAwaitedFor = 3 * time.Second
)

var (
	errGaveUp    = errors.New("it was told to hurry, and no other media node took all of its rooms in time: their people rejoin by themselves when a node has headroom")
	errStoreAway = errors.New("the store did not answer while the node drained, so no other media node could take all of its rooms: their people rejoin by themselves when the store is back")
)

// drainedMedia is the media node that drains.
type drainedMedia interface {
	StartDrain(sfu.Drain)
	DrainState() sfu.DrainState
	DrainChanged() <-chan struct{}
	Panics() *panics.Guard
}

// sfuDrain empties a media node when an operator or SIGTERM asks for it, and ends it when it is empty. The goroutine of run owns all
// fields but the atomics.
type sfuDrain struct {
	media drainedMedia
	log   *slog.Logger
	// announce tells the other nodes.
	announce func(draining, overdue bool)
	// askStore returns an error unless the store takes writes. Without the store no room can move.
	askStore func(ctx context.Context) error

	// told is the state that was last announced.
	told   sfu.DrainState
	logged sfu.DrainState
	// at is the time of the last log line about progress.
	at time.Time
	// terminated is when the drain began that SIGTERM asked for.
	terminated time.Time
	// overdue is when the deadline was found to have passed, and zero before.
	overdue time.Time
	leaving bool
	empty   bool

	// storeAway says that the last question to the store had no answer.
	storeAway atomic.Bool
	// unfinished says why the node left with rooms, and is nil if it did not.
	unfinished atomic.Pointer[error]
}

// run ends the membership by leave. A second SIGTERM in one drain leaves at once: then the rooms move by restarts.
func (d *sfuDrain) run(ctx context.Context, terminate <-chan os.Signal, leave func()) error {
	var asking sync.WaitGroup
	defer asking.Wait()
	asking.Go(func() { d.watchStore(ctx) })
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-terminate:
			d.terminate(leave)
		case <-d.media.DrainChanged():
		case <-tick.C:
		}
		d.media.Panics().Catch(d.log, "a step of the drain broke", func() { d.step(leave) })
	}
}

// watchStore asks the store while the drain has rooms left, and logs when it falls silent and when it answers again.
func (d *sfuDrain) watchStore(ctx context.Context) {
	backoff.Every(ctx, storeAskedEvery, func() {
		now := d.media.DrainState()
		if !now.Draining || now.Rooms == 0 {
			d.storeAway.Store(false)
			return
		}
		asked, cancel := context.WithTimeout(ctx, storeAskedEvery)
		err := d.askStore(asked)
		cancel()
		switch was := d.storeAway.Swap(err != nil); {
		case ctx.Err() != nil:
		case err != nil && !was:
			d.log.Warn("the store does not answer: the drain waits for it, because rooms cannot move without it", "rooms", now.Rooms, "people", now.Peers, "error", err)
		case err == nil && was:
			d.log.Info("the store answers again: the drain goes on", "rooms", now.Rooms, "people", now.Peers)
		}
	})
}

func (d *sfuDrain) terminate(leave func()) {
	now := d.media.DrainState()
	if !now.Draining || !now.Began.Equal(d.terminated) {
		d.media.StartDrain(sfu.Drain{Exit: true})
		d.terminated = d.media.DrainState().Began
		return
	}
	if d.leaving {
		return
	}
	d.log.Warn("told to hurry: rooms move by restarts", "rooms", now.Rooms, "people", now.Peers)
	d.hurry(errGaveUp, leave)
}

// hurry leaves though rooms are open. The process fails with why unless the rooms move while linger waits.
func (d *sfuDrain) hurry(why error, leave func()) {
	d.unfinished.Store(&why)
	d.leaving = true
	leave()
}

// step does what the state of the drain asks for.
func (d *sfuDrain) step(leave func()) {
	now := d.media.DrainState()
	if now.Draining != d.told.Draining || now.Overdue != d.told.Overdue {
		d.announce(now.Draining, now.Overdue)
		d.overdue = time.Time{}
		if now.Overdue {
			d.log.Warn("the drain's deadline has passed: rooms move by restarts", "rooms", now.Rooms, "people", now.Peers)
			d.overdue = time.Now()
		}
		d.told = now
	}
	switch {
	case d.leaving:
	case !now.Draining:
		d.at, d.empty = time.Time{}, false
	case now.Rooms == 0:
		if !d.empty {
			d.empty = true
			d.log.Info("node is empty", "took_ms", time.Since(now.Began).Milliseconds(), "ends", now.Exit)
		}
		if now.Exit {
			d.leaving = true
			leave()
		}
	case d.outwaitsTheStore(now):
		d.log.Error("the store did not answer during the drain: the node ends before its supervisor kills it", "rooms", now.Rooms, "people", now.Peers)
		d.hurry(errStoreAway, leave)
	case d.at.IsZero() || now.Rooms != d.logged.Rooms && time.Since(d.at) >= drainLogEvery:
		d.log.Info("node drains", "rooms", now.Rooms, "people", now.Peers)
		d.at, d.logged = time.Now(), now
	}
}

// outwaitsTheStore reports whether the node has waited for a silent store as long as it may. After SIGTERM a supervisor waits for the
// end of the process and kills it after a while. Nobody waits like that for a drain that an operator asked for.
func (d *sfuDrain) outwaitsTheStore(now sfu.DrainState) bool {
	return now.Began.Equal(d.terminated) && !d.overdue.IsZero() && time.Since(d.overdue) >= storeAwaitedFor && d.storeAway.Load()
}

// linger keeps media going after a hurried leave, until the rooms have gone, or lingerFor has passed.
func (d *sfuDrain) linger(ctx context.Context) error {
	why := d.unfinished.Load()
	if why == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lingerFor)
	defer cancel()
	tick := time.NewTicker(drainEvery)
	defer tick.Stop()
	for {
		now := d.media.DrainState()
		if now.Rooms == 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			if now.Open == 0 {
				return nil
			}
			d.log.Error("rooms were given up: no other media node took them in time", "rooms", now.Open, "people", now.Peers)
			return *why
		}
	}
}
