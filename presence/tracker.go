package presence

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/panics"
)

// Tracker keeps the leases of one signaling node, and answers those who watch users. Its methods do not block.
type Tracker struct {
	timing Timing
	leases LeaseStore
	users  WatchStore
	panics *panics.Guard
	log    *slog.Logger

	written, asked chan struct{} // something is to be written, asked for

	mu      sync.Mutex // guards the fields below, and what they point to
	held    map[name]*Held
	left    map[name]Lease // to be removed
	watched map[string]*watched
	due     map[*Watcher]struct{} // have something to be told
	watches int                   // of all watchers together

	failing bool   // the writer's: the last heartbeat was not written
	reader  reader // the reader's
}

// name is a lease's in the store.
type name struct{ user, conn string }

func nameOf(l Lease) name { return name{l.User, l.Conn} }

// Held is a lease that this node keeps.
type Held struct {
	lease   Lease
	written bool
}

// maxLeft bounds the leaves that wait for a store that is away. Beyond it leases lapse instead.
const maxLeft = 20_000

// New makes a Tracker. Run starts it.
func New(timing Timing, leases LeaseStore, users WatchStore, guard *panics.Guard, log *slog.Logger) *Tracker {
	return &Tracker{
		timing: timing, leases: leases, users: users, panics: guard, log: log,
		written: make(chan struct{}, 1), asked: make(chan struct{}, 1),
		held: make(map[name]*Held), left: make(map[name]Lease), watched: make(map[string]*watched), due: make(map[*Watcher]struct{}),
	}
}

// Run works until ctx ends, and leaves all leases to lapse: their clients resume elsewhere. It returns nil.
func (t *Tracker) Run(ctx context.Context) error {
	var both sync.WaitGroup
	both.Go(func() { t.write(ctx) })
	both.Go(func() { t.read(ctx) })
	both.Wait()
	return nil
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Add keeps a connection's lease from now on, in place of one of the same name.
func (t *Tracker) Add(l Lease) *Held {
	h := &Held{lease: l}
	if err := l.Validate(); err != nil {
		t.log.Error("a connection has no presence", "error", err)
		return h
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held[nameOf(l)] = h
	delete(t.left, nameOf(l))
	wake(t.written)
	return h
}

// Drop stops the heartbeats of a connection that was lost. Its lease lapses, unless the client resumes.
func (t *Tracker) Drop(h *Held) { t.end(h, false) }

// Remove ends the lease of a connection whose user left.
func (t *Tracker) Remove(h *Held) { t.end(h, true) }

// end does nothing for a lease that another socket has taken over here.
func (t *Tracker) end(h *Held, left bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := nameOf(h.lease)
	if t.held[n] != h {
		return
	}
	delete(t.held, n)
	if left && len(t.left) < maxLeft {
		t.left[n] = h.lease
		wake(t.written)
	}
}

// write is the only goroutine that writes, so that a leave is never overtaken.
func (t *Tracker) write(ctx context.Context) {
	beat, sweep := time.NewTicker(t.timing.Beat), time.NewTicker(t.timing.Sweep)
	defer beat.Stop()
	defer sweep.Stop()
	for {
		due := t.flush
		select {
		case <-ctx.Done():
			return
		case <-t.written:
		case <-beat.C:
			due = t.beat
		case <-sweep.C:
			due = t.sweep
		}
		t.panics.Survives(t.log, "keeping leases broke", func() {
			limited, cancel := context.WithTimeout(ctx, t.timing.limit())
			defer cancel()
			err := due(limited)
			if failing := err != nil && ctx.Err() == nil; failing != t.failing {
				t.failing = failing
				t.log.Info("presence: writing to the store", "works", !failing, "error", err)
			}
		})
	}
}

// sweep repeats a heartbeat that failed first, for the sooner it comes the better.
func (t *Tracker) sweep(ctx context.Context) error {
	if t.failing {
		if err := t.beat(ctx); err != nil {
			return err
		}
	}
	return t.leases.Sweep(ctx)
}

// beat is one call for all leases, and a second one if the store has lost some.
func (t *Tracker) beat(ctx context.Context) error {
	t.mu.Lock()
	leases := make([]Lease, 0, len(t.held))
	for _, h := range t.held {
		if h.written {
			leases = append(leases, h.lease)
		}
	}
	t.mu.Unlock()
	missing, err := t.leases.Renew(ctx, leases)
	t.mu.Lock()
	for _, l := range missing {
		if h := t.held[nameOf(l)]; h != nil {
			h.written = false
		}
	}
	t.mu.Unlock()
	if err != nil {
		return err
	}
	return t.flush(ctx)
}

// flush writes what is new. What fails is tried again with the next heartbeat.
func (t *Tracker) flush(ctx context.Context) error {
	t.mu.Lock()
	var fresh []*Held
	var leases, gone []Lease
	for _, h := range t.held {
		if !h.written {
			fresh, leases = append(fresh, h), append(leases, h.lease)
		}
	}
	for _, l := range t.left {
		gone = append(gone, l)
	}
	t.left = make(map[name]Lease)
	t.mu.Unlock()
	added := t.leases.Add(ctx, leases)
	removed := t.leases.Remove(ctx, gone)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, h := range fresh {
		h.written = added == nil
	}
	for _, l := range gone {
		if _, again := t.held[nameOf(l)]; removed != nil && !again && len(t.left) < maxLeft {
			t.left[nameOf(l)] = l
		}
	}
	if added != nil {
		return added
	}
	return removed
}
