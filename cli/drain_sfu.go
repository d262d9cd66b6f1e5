package cli

import (
	"context"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu"
)

const (
	drainEvery = 100 * time.Millisecond
	// drainLogEvery bounds the lines about progress.
	drainLogEvery = 2 * time.Second
)

var errGaveUp = errors.New("it was told to hurry, and no other media node took all of its rooms in time: their people rejoin by themselves when a node has headroom")

// sfuDrain empties a media node when an operator or SIGTERM asks for it, and ends it when it is empty.
type sfuDrain struct {
	*sfuNode

	told       sfu.DrainState // to the other nodes
	logged     sfu.DrainState
	at         time.Time // of the last log line
	terminated time.Time // when the drain began that SIGTERM asked for
	leaving    bool
	empty      bool
	hurried    atomic.Bool
}

// run ends the membership by leave. A second SIGTERM in one drain leaves at once: then the rooms move by restarts.
func (d *sfuDrain) run(ctx context.Context, terminate <-chan os.Signal, leave func()) error {
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
		d.media.Panics().Survives(d.log, "a look at the drain broke", func() { d.look(leave) })
	}
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
	d.hurried.Store(true)
	d.leaving = true
	leave()
}

func (d *sfuDrain) look(leave func()) {
	now := d.media.DrainState()
	if now.Draining != d.told.Draining || now.Overdue != d.told.Overdue {
		d.cluster.SetDraining(now.Draining, now.Overdue)
		if now.Overdue {
			d.log.Warn("the drain's deadline has passed: rooms move by restarts", "rooms", now.Rooms, "people", now.Peers)
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
	case d.at.IsZero() || now.Rooms != d.logged.Rooms && time.Since(d.at) >= drainLogEvery:
		d.log.Info("node drains", "rooms", now.Rooms, "people", now.Peers)
		d.at, d.logged = time.Now(), now
	}
}

// linger keeps media going after a hurried leave, until the rooms have gone, or lingerFor has passed.
func (d *sfuDrain) linger(ctx context.Context) error {
	if !d.hurried.Load() {
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
			return errGaveUp
		}
	}
}
