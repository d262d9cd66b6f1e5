package traces

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/loglimit"
	"github.com/holdfast-rtc/holdfast/internal/panics"
)

const (
	// Some 500 joins fit, or the clients of one death. A span has about 1 KB, so the queue has at most 8 MB.
	queued = 8192
	batch  = 512
	// Spans come in bursts, and a request each second sends a whole burst at once.
	gather        = time.Second
	exportTimeout = 5 * time.Second
	firstRetry    = time.Second
	lastRetry     = 15 * time.Second
	// A batch that failed this often is dropped, because the collector may refuse only this one. The pauses before
	// sum up to half a minute, in which a collector can restart.
	maxTries = 6
	// endTimeout is what a process gives to the last spans when it ends.
	endTimeout   = 2 * time.Second
	linesPerHour = 6
)

// exporter sends spans to the collector. It is *otlptrace.Exporter.
type exporter interface {
	Start(ctx context.Context) error
	ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error
	Shutdown(ctx context.Context) error
}

// queue holds the ended spans until the collector has taken them. It is an sdktrace.SpanProcessor.
type queue struct {
	exporter exporter
	log      *slog.Logger
	panics   *panics.Guard

	mu      sync.Mutex
	waiting []sdktrace.ReadOnlySpan // guarded by mu
	sent    uint64                  // guarded by mu
	dropped uint64                  // guarded by mu
}

// OnStart is part of sdktrace.SpanProcessor.
func (q *queue) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// Shutdown is part of sdktrace.SpanProcessor. The end of run has the same effect.
func (q *queue) Shutdown(context.Context) error { return nil }

// ForceFlush is part of sdktrace.SpanProcessor. Nothing calls it.
func (q *queue) ForceFlush(context.Context) error { return nil }

// OnEnd is part of sdktrace.SpanProcessor. It takes the span over and returns at once; a full queue drops the span.
func (q *queue) OnEnd(span sdktrace.ReadOnlySpan) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) >= queued {
		q.dropped++
		return
	}
	q.waiting = append(q.waiting, span)
}

// run sends what waits until ctx ends, and calls quiet every second, and once more, with last, before the last sending.
func (q *queue) run(ctx context.Context, quiet func(now time.Time, last bool)) error {
	// An exporter that starts under an ended context would refuse the last spans.
	if err := q.exporter.Start(context.WithoutCancel(ctx)); err != nil {
		return err //nolint:wrapcheck // the exporter says what it did
	}
	failures := loglimit.New(linesPerHour/time.Hour.Seconds(), 1)
	retry := backoff.Backoff{First: firstRetry, Most: lastRetry}
	tick := time.NewTicker(gather)
	defer tick.Stop()
	tries := 0
	var pausedUntil time.Time
	for {
		select {
		case <-ctx.Done():
			quiet(time.Now(), true)
			return q.finish(context.WithoutCancel(ctx))
		case <-tick.C:
		}
		now := time.Now()
		quiet(now, false)
		if now.Before(pausedUntil) {
			continue
		}
		err := q.flush(ctx, exportTimeout)
		if err == nil || ctx.Err() != nil {
			tries = 0
			retry.Reset()
			continue
		}
		if tries++; tries >= maxTries {
			tries = 0
			q.drop()
		}
		pausedUntil = now.Add(retry.Next())
		if unlogged, ok := failures.Next(); ok {
			q.log.Warn("the collector takes no traces", "error", err, "dropped", q.counters().Dropped, "unlogged", unlogged)
		}
	}
}

// finish sends what waits once more.
func (q *queue) finish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, endTimeout)
	defer cancel()
	if err := q.flush(ctx, endTimeout); err != nil {
		q.log.Info("the last traces were not sent", "error", err, "spans", q.counters().Waiting)
	}
	_ = q.exporter.Shutdown(ctx)
	return nil
}

var errBroke = errors.New("sending traces broke")

// flush sends the waiting spans in batches. A batch that fails stays in front.
func (q *queue) flush(ctx context.Context, patience time.Duration) error {
	for {
		spans := q.front()
		if len(spans) == 0 {
			return nil
		}
		err := errBroke
		attempt, cancel := context.WithTimeout(ctx, patience)
		broke := q.panics.Catch(q.log, "sending traces broke", func() { err = q.exporter.ExportSpans(attempt, spans) })
		cancel()
		switch {
		case broke:
			// The panic came of these spans and would come again.
			q.drop()
		case err != nil:
			return err //nolint:wrapcheck // the exporter says what it did
		default:
			q.mu.Lock()
			q.waiting, q.sent = q.waiting[len(spans):], q.sent+uint64(len(spans))
			q.mu.Unlock()
		}
	}
}

// front returns the first batch. Only run's goroutine takes from the front.
func (q *queue) front() []sdktrace.ReadOnlySpan {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		// The array is freed, since a burst may have made it large.
		q.waiting = nil
	}
	n := min(len(q.waiting), batch)
	return q.waiting[:n:n]
}

// drop gives the first batch up.
func (q *queue) drop() {
	n := uint64(len(q.front()))
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting, q.dropped = q.waiting[n:], q.dropped+n
}

func (q *queue) counters() Counters {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Counters{Sent: q.sent, Dropped: q.dropped, Waiting: len(q.waiting)}
}
