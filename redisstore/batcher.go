package redisstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Claims that come while others are under way share a pipeline, with one read of the marker for all of them. A lone
// claim is sent at once, on its caller's goroutine.
const (
	// maxBatch bounds one pipeline: past it the wait for the reply grows, not the throughput.
	maxBatch = 128
	// maxPipelines is how many pipelines of one master are under way at a time. One connection that hangs must not
	// hold up all claims, but more pipelines mean smaller batches. A far master has maxFarPipelines: waiting for
	// another pipeline would cost a claim two round trips.
	maxPipelines    = 2
	maxFarPipelines = 32
	// far is the round trip from which on a master is far.
	far = 10 * time.Millisecond
	// maxWaiting bounds the claims that wait for a pipeline. One more is refused with errCrowded: a store that far
	// behind will not answer in time.
	maxWaiting = 8192
	// batchTimeout bounds one batch of others' claims, retries included. Each caller's context may end its wait sooner.
	batchTimeout = 500 * time.Millisecond
)

var (
	errCrowded  = errors.New("too many claims wait for the store")
	errNoMarker = errors.New("the master is not known to own any slot")
)

// claim is one claim under way.
type claim struct {
	room   ring.RoomID
	pin    pin.Pin
	answer claimed
	done   chan struct{} // nil when its caller sends it
}

// claimed is the answer to a claim.
type claimed struct {
	text string // what stands, unless won
	won  bool
	in   pin.Incarnation
	err  error
}

// batcher brings the claims of one master together.
type batcher struct {
	mu        sync.Mutex // guards the fields below
	waiting   []*claim
	pipelines int           // under way
	trip      time.Duration // the last round trip that succeeded
}

// took notes how long a round trip took.
func (b *batcher) took(trip time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trip = trip
}

// join reports whether c may be sent at once, and else has it wait.
func (b *batcher) join(c *claim) (now bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	limit := maxPipelines
	if b.trip >= far {
		limit = maxFarPipelines
	}
	switch {
	case b.pipelines < limit && len(b.waiting) == 0:
		b.pipelines++
		return true, nil
	case len(b.waiting) >= maxWaiting:
		return false, errCrowded
	}
	c.done = make(chan struct{})
	b.waiting = append(b.waiting, c)
	return false, nil
}

// next returns the next batch for a pipeline that has ended, or nil when no claim waits.
func (b *batcher) next() []*claim {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.waiting), maxBatch)
	if n == 0 {
		b.pipelines--
		b.waiting = nil // Free the memory of a burst.
		return nil
	}
	batch := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	return batch
}

// claim sends c, alone or with others, and returns the answer.
func (m *master) claim(ctx context.Context, c *claim) claimed {
	now, err := m.claims.join(c)
	if err != nil {
		return claimed{err: err}
	}
	if now {
		m.execute(ctx, []*claim{c})
		if batch := m.claims.next(); batch != nil {
			go m.executeAll(batch) //nolint:contextcheck // The caller's context must not end the claims of others.
		}
		return c.answer
	}
	select {
	case <-c.done:
		return c.answer
	case <-ctx.Done():
		return claimed{err: ctx.Err()}
	}
}

// executeAll executes batches until no claim waits.
func (m *master) executeAll(batch []*claim) {
	for ; batch != nil; batch = m.claims.next() {
		ctx, cancel := context.WithTimeout(context.Background(), batchTimeout)
		m.execute(ctx, batch)
		cancel()
		for _, c := range batch {
			close(c.done)
		}
	}
}

// execute makes one round trip. The marker is read after the claims: a loss of memory between the two must lose the
// claims and show no marker, never the other way around.
func (m *master) execute(ctx context.Context, batch []*claim) {
	pipe := m.client.Pipeline()
	sets := make([]*redis.StatusCmd, len(batch))
	for i, c := range batch {
		sets[i] = pipe.SetArgs(ctx, m.keys.pin(c.room), c.pin.Encode(), claimArgs())
	}
	marker := m.readMarker(ctx, pipe)
	var now *redis.TimeCmd
	if m.clock.isOld() {
		now = pipe.Time(ctx)
	}
	began := time.Now()
	if _, err := pipe.Exec(ctx); err == nil || isReply(err) { // Each command carries its own error.
		m.claims.took(time.Since(began))
	}
	if now != nil && now.Err() == nil {
		m.clock.learn(now.Val().UnixMicro())
	}
	in := m.incarnationOf(marker.Result())
	for i, c := range batch {
		c.answer = claimedBy(sets[i])
		c.answer.in = in
	}
}
