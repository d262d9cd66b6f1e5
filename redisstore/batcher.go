package redisstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// Concurrent claims share a pipeline. A lone claim does not wait.
const (
	maxBatch = 128
	// With one pipeline, one that hangs would stop all claims. With more than two, batches would be smaller. A far master gets more, because
	// a claim that waits for a pipeline to return waits for two round trips.
	maxPipelines    = 2
	maxFarPipelines = 32
	// far is the round trip from which a master counts as far.
	far = 10 * time.Millisecond
	// maxWaiting bounds the claims that wait. Further ones would not be answered in time.
	maxWaiting   = 8192
	batchTimeout = 500 * time.Millisecond
)

var (
	errCrowded  = errors.New("too many claims wait for the store")
	errNoMarker = errors.New("the master is not known to own any slot")
)

type claim struct {
	room ring.RoomID
	pin  pin.Pin
	why  string
	// entry is nil for a claim without admission.
	entry  *waitlist.Entry
	answer claimed
	done   chan struct{}
}

type claimed struct {
	// text is the current pin, unless the claim was won.
	text      string
	won       bool
	in        pin.Incarnation
	door      bool
	admission waitlist.Answer
	err       error
}

type batcher struct {
	mu      sync.Mutex
	waiting []*claim
	// pipelines are those under way.
	pipelines int
	// trip is the round trip of the last pipeline.
	trip time.Duration
}

func (b *batcher) took(trip time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.trip = trip
}

// join takes a claim into a batch. If now is true, the caller sends it; otherwise it waits for done.
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

func (b *batcher) next() []*claim {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.waiting), maxBatch)
	if n == 0 {
		b.pipelines--
		b.waiting = nil
		return nil
	}
	batch := b.waiting[:n:n]
	b.waiting = b.waiting[n:]
	return batch
}

func (m *master) claim(ctx context.Context, c *claim) claimed {
	now, err := m.claims.join(c)
	if err != nil {
		return claimed{err: err}
	}
	if now {
		m.execute(ctx, []*claim{c})
		if batch := m.claims.next(); batch != nil {
			go m.executeAll(batch) //nolint:contextcheck // the caller's context must not end others' claims
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

// execute answers every claim of the batch, also after a panic.
func (m *master) execute(ctx context.Context, batch []*claim) {
	err := m.catch("a batch of claims broke", func() error { m.send(ctx, batch); return nil })
	for _, c := range batch {
		if err != nil {
			c.answer = claimed{err: err}
		}
	}
}

type asking struct {
	pipe redis.Pipeliner
	set  *redis.StatusCmd
	door *redis.IntCmd
	// enter stands in place of the two other commands.
	enter *redis.Cmd
}

func (c *claim) queue(ctx context.Context, keys keyspace, pipe redis.Pipeliner) asking {
	a := asking{pipe: pipe}
	if c.entry != nil {
		a.enter = evalEnter(ctx, pipe, keys, c)
	} else {
		a.set = pipe.SetArgs(ctx, keys.pin(c.room), c.pin.Encode(), claimArgs())
		a.door = pipe.Exists(ctx, keys.door(c.room))
	}
	c.noteClaim(ctx, keys, pipe)
	return a
}

func (a asking) answer() claimed {
	if a.enter != nil {
		return enteredBy(a.enter)
	}
	c := claimedBy(a.set)
	if n, err := a.door.Result(); err != nil && c.err == nil {
		c.err = err
	} else {
		c.door = n > 0
	}
	return c
}

// send reads the marker last: a loss of data in between must lose the claims and show no marker.
func (m *master) send(ctx context.Context, batch []*claim) {
	pipe := m.client.Pipeline()
	asks := make([]asking, len(batch))
	for i, c := range batch {
		asks[i] = c.queue(ctx, m.keys, pipe)
	}
	marker := m.readMarker(ctx, pipe)
	var now *redis.TimeCmd
	if m.clock.isOld() {
		now = pipe.Time(ctx)
	}
	began := time.Now()
	// Each command has its own error.
	if _, err := pipe.Exec(ctx); err == nil || isReply(err) {
		m.claims.took(time.Since(began))
	}
	if now != nil && now.Err() == nil {
		m.clock.learn(now.Val().UnixMicro())
	}
	in := m.incarnationOf(marker.Result())
	for i, c := range batch {
		c.answer = asks[i].answer()
		c.answer.in = in
	}
}
