package events

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/connlimit"
	"github.com/holdfast-rtc/holdfast/internal/panics"
)

const (
	// A burst fits, such as the events of a dead node with 1,000 rooms. The events of a longer silence of the store
	// do not.
	queued = 4096
	// A process tells of at most so many limits in limitQuiet; the store leaves out the repetitions of further ones.
	limitsRemembered = 4096
	// This is the size of one pipeline to the store.
	batch = 256
	// Facts come in bursts, so a short wait writes a whole burst at once.
	gather       = 100 * time.Millisecond
	writeTimeout = 2 * time.Second
	firstRetry   = 200 * time.Millisecond
	lastRetry    = 5 * time.Second
)

// Store keeps the events.
type Store interface {
	// AppendEvents keeps each fact once, however often it is reported within its SameFor.
	AppendEvents(ctx context.Context, facts []Event) error
}

// Recorder writes events in the background. It is safe for concurrent use; a nil Recorder records nothing.
type Recorder struct {
	store  Store
	log    *slog.Logger
	panics *panics.Guard
	lost   atomic.Uint64
	wake   chan struct{}
	// limits lets each limit be told of once in limitQuiet.
	limits *connlimit.KeyedLimiter

	mu      sync.Mutex
	waiting []Event // guarded by mu
}

// NewRecorder starts nothing: Run writes.
func NewRecorder(store Store, guard *panics.Guard, log *slog.Logger) *Recorder {
	// The store counts limitQuiet from when it writes, and would leave out an event that comes a moment too early.
	pause := limitQuiet + writeTimeout
	return &Recorder{
		store: store, log: log, panics: guard, wake: make(chan struct{}, 1),
		limits: connlimit.NewKeyedLimiter(1/pause.Seconds(), 1, limitsRemembered),
	}
}

// Record takes a fact over and returns at once. When 4,096 facts wait for the store, it is lost and counted.
func (r *Recorder) Record(fact Event) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) >= queued {
		r.lost.Add(1)
		return
	}
	r.waiting = append(r.waiting, fact)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Reached records a LimitReached event, unless the same limit of that room or node was told of within ten minutes. It costs little, so it may
// be called at each refusal.
func (r *Recorder) Reached(fact Event) {
	fact.Kind = LimitReached
	if r != nil && r.limits.Allow(fact.Same()) {
		r.Record(fact)
	}
}

// Lost counts the facts that were not kept.
func (r *Recorder) Lost() uint64 { return r.lost.Load() }

// Run writes the facts until ctx ends. Then it writes the remaining facts once more, and returns nil.
func (r *Recorder) Run(ctx context.Context) error {
	retry := backoff.Backoff{First: firstRetry, Most: lastRetry}
	failing := false
	for {
		select {
		case <-ctx.Done():
			r.flush(context.WithoutCancel(ctx))
			return nil
		case <-r.wake:
		}
		// If ctx ends here, the next round writes the remaining facts.
		if !backoff.Sleep(ctx, gather) {
			continue
		}
		err := r.flush(ctx)
		if ctx.Err() != nil {
			continue
		}
		if (err != nil) != failing {
			failing = err != nil
			r.log.Warn("writing of events", "failing", failing, "error", err, "lost", r.lost.Load())
		}
		if err == nil {
			retry.Reset()
			continue
		}
		r.poke()
		backoff.Sleep(ctx, backoff.Jitter(retry.Next()))
	}
}

func (r *Recorder) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

var errBroke = errors.New("writing events broke")

// flush writes the waiting facts in batches. A batch that fails is put back to the front.
func (r *Recorder) flush(ctx context.Context) error {
	for {
		facts := r.take()
		if len(facts) == 0 {
			return nil
		}
		err := errBroke
		attempt, cancel := context.WithTimeout(ctx, writeTimeout)
		caught := r.panics.Catch(r.log, "writing events broke", func() { err = r.store.AppendEvents(attempt, facts) })
		cancel()
		switch {
		// A panic came of these facts and would come again, so they are not put back.
		case caught:
			r.lost.Add(uint64(len(facts)))
		case err != nil:
			r.putBack(facts)
			return err //nolint:wrapcheck // the store says what it did
		}
	}
}

func (r *Recorder) take() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := min(len(r.waiting), batch)
	facts := r.waiting[:n:n]
	r.waiting = r.waiting[n:]
	return facts
}

func (r *Recorder) putBack(facts []Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = append(facts, r.waiting...)
	if over := len(r.waiting) - queued; over > 0 {
		r.waiting = r.waiting[:queued]
		r.lost.Add(uint64(over))
	}
}
