package presence

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/loglimit"
	"github.com/holdfast-rtc/holdfast/internal/panics"
)

// Tracker keeps the leases of one signaling node and tells its watchers of changes. Its methods never wait for the
// store, except Run.
type Tracker struct {
	timing  Timing
	leases  LeaseStore
	users   WatchStore
	panics  *panics.Guard
	log     *slog.Logger
	refused *loglimit.Limiter

	written, asked chan struct{}

	// mu guards the fields below, and what they point to.
	mu   sync.Mutex
	held map[name]*Held
	// fresh has the leases that are not in the store yet.
	fresh   map[name]*Held
	left    map[name]Lease
	watched [Shards]map[string]*watched
	unknown map[string]struct{}
	due     map[*Watcher]struct{}
	watches int
	// shares counts the watched users of each owner.
	shares map[string]int

	failing bool
	reader  reader
}

type name struct{ user, conn string }

func nameOf(l Lease) name { return name{l.User, l.Conn} }

// Held is one lease that the Tracker keeps.
type Held struct{ lease Lease }

// maxLeft bounds the leaves that are not written yet. Leases beyond it lapse instead.
const maxLeft = 20_000

// New starts nothing: Run writes and reads.
func New(timing Timing, leases LeaseStore, users WatchStore, guard *panics.Guard, log *slog.Logger) *Tracker {
	t := &Tracker{
		timing: timing, leases: leases, users: users, panics: guard, log: log, refused: loglimit.New(1, 20),
		written: make(chan struct{}, 1), asked: make(chan struct{}, 1),
		held: make(map[name]*Held), fresh: make(map[name]*Held), left: make(map[name]Lease),
		unknown: make(map[string]struct{}), due: make(map[*Watcher]struct{}), shares: make(map[string]int),
	}
	for shard := range t.watched {
		t.watched[shard] = make(map[string]*watched)
	}
	return t
}

// Run ends with ctx, and returns nil. After that all leases lapse.
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

// Count returns how many leases are kept here, and how many watches there are.
func (t *Tracker) Count() (leases, watches int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.held), t.watches
}

// Add begins a lease, or takes over the lease of the same name.
func (t *Tracker) Add(l Lease) *Held {
	h := &Held{lease: l}
	if err := l.Validate(); err != nil {
		if unlogged, ok := t.refused.Next(); ok {
			t.log.Error("a connection has no presence", "error", err, "unlogged", unlogged)
		}
		return h
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held[nameOf(l)], t.fresh[nameOf(l)] = h, h
	delete(t.left, nameOf(l))
	wake(t.written)
	return h
}

// Drop stops the heartbeats of a lost connection, whose lease then lapses.
func (t *Tracker) Drop(h *Held) { t.end(h, false) }

// Remove ends a lease at once.
func (t *Tracker) Remove(h *Held) { t.end(h, true) }

// RemoveLost ends a lease at once that any node may hold, or none any more. Only the lease's names count.
func (t *Tracker) RemoveLost(l Lease) {
	if l.Validate() != nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.left) < maxLeft {
		t.left[nameOf(l)] = l
		wake(t.written)
	}
}

// end does nothing if another socket has taken the lease over.
func (t *Tracker) end(h *Held, left bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := nameOf(h.lease)
	if t.held[n] != h {
		return
	}
	delete(t.held, n)
	delete(t.fresh, n)
	if left && len(t.left) < maxLeft {
		t.left[n] = h.lease
		wake(t.written)
	}
}

// write makes all writes to the store, one after the other, so that no renewal overtakes a leave.
func (t *Tracker) write(ctx context.Context) {
	heartbeat, sweep := time.NewTicker(t.timing.Heartbeat), time.NewTicker(t.timing.Sweep)
	defer heartbeat.Stop()
	defer sweep.Stop()
	for {
		due := t.flush
		select {
		case <-ctx.Done():
			return
		case <-t.written:
		case <-heartbeat.C:
			due = t.heartbeat
		case <-sweep.C:
			due = t.sweep
		}
		// A store that begins or ceases to fail is logged once.
		t.panics.Catch(t.log, "keeping leases broke", func() {
			err := due(ctx)
			if failing := err != nil && ctx.Err() == nil; failing != t.failing {
				t.failing = failing
				t.log.Info("presence: writing to the store", "works", !failing, "error", err)
			}
		})
	}
}

func (t *Tracker) sweep(ctx context.Context) error {
	var failed error
	if t.failing {
		failed = t.heartbeat(ctx)
	}
	return errors.Join(failed, t.within(ctx, t.leases.Sweep))
}

// within gives each call of the store a time limit of its own, so that a call without an answer uses up no other
// call's time.
func (t *Tracker) within(ctx context.Context, f func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, t.timing.limit())
	defer cancel()
	return f(limited)
}

// heartbeat renews all leases that the store should have, and writes again those that it lacks.
func (t *Tracker) heartbeat(ctx context.Context) error {
	t.mu.Lock()
	leases := make([]Lease, 0, len(t.held))
	for n, h := range t.held {
		if t.fresh[n] == nil {
			leases = append(leases, h.lease)
		}
	}
	t.mu.Unlock()
	var missing []Lease
	err := t.within(ctx, func(ctx context.Context) (err error) {
		missing, err = t.leases.Renew(ctx, leases)
		return err
	})
	t.mu.Lock()
	for _, l := range missing {
		if h := t.held[nameOf(l)]; h != nil {
			t.fresh[nameOf(l)] = h
		}
	}
	t.mu.Unlock()
	return errors.Join(err, t.flush(ctx))
}

// flush writes the new and the ended leases. After an error they wait for the next heartbeat.
func (t *Tracker) flush(ctx context.Context) error {
	t.mu.Lock()
	fresh, left := t.fresh, t.left
	t.fresh, t.left = make(map[name]*Held), make(map[name]Lease)
	leases := make([]Lease, 0, len(fresh))
	for _, h := range fresh {
		leases = append(leases, h.lease)
	}
	t.mu.Unlock()
	added := t.within(ctx, func(ctx context.Context) error { return t.leases.Add(ctx, leases) })
	removed := t.within(ctx, func(ctx context.Context) error { return t.leases.Remove(ctx, slices.Collect(maps.Values(left))) })
	t.mu.Lock()
	defer t.mu.Unlock()
	// A lease may have ended while it was written. Then it is not written again.
	for n, h := range fresh {
		if added != nil && t.held[n] == h {
			t.fresh[n] = h
		}
	}
	for n, l := range left {
		if _, again := t.held[n]; removed != nil && !again && len(t.left) < maxLeft {
			t.left[n] = l
		}
	}
	return errors.Join(added, removed)
}
