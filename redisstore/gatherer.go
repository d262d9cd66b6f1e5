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

// Claims that come while others are on their way travel together: one write, one read and one look at
// the marker for all of them. A claim that comes alone goes at once, on its caller's goroutine.
const (
	// maxGathered bounds one pipeline: past it the wait for the reply grows, not the throughput.
	maxGathered = 128
	// maxFlights is how many pipelines of one master are under way at a time. One connection that
	// hangs must not hold up all claims; more flights mean smaller pipelines. A master that is far away has maxFarFlights: to
	// wait for a flight and then to fly would take a claim two round trips.
	maxFlights    = 2
	maxFarFlights = 32
	// far is a round trip from which on a master counts as far away.
	far = 10 * time.Millisecond
	// maxWaiting bounds the claims that wait for a flight. One more is refused with errCrowded:
	// a store that far behind will not answer in time.
	maxWaiting = 8192
	// flightTimeout bounds one flight of others' claims, retries included. Each caller's
	// own context ends his waiting sooner.
	flightTimeout = 500 * time.Millisecond
)

var (
	errCrowded  = errors.New("too many claims wait for the store")
	errNoMarker = errors.New("the master is not known to own any slot")
)

// claim is one claim on its way.
type claim struct {
	room   ring.RoomID
	pin    pin.Pin
	answer claimed
	done   chan struct{} // nil when nobody waits: its caller flies it
}

// claimed is the answer to a claim.
type claimed struct {
	text string // what stands; ours where there was none
	won  bool
	in   pin.Generation
	err  error
}

// gatherer brings claims of one master together.
type gatherer struct {
	mu      sync.Mutex // guards the fields below
	waiting []*claim
	flights int
	trip    time.Duration // the last round trip that succeeded
}

// took notes how long a round trip took.
func (g *gatherer) took(trip time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trip = trip
}

// limit is how many flights there may be now. Call it with mu held.
func (g *gatherer) limit() int {
	if g.trip >= far {
		return maxFarFlights
	}
	return maxFlights
}

// claim sends c, alone or with others, and returns the answer.
func (m *master) claim(ctx context.Context, c *claim) claimed {
	g := &m.claims
	g.mu.Lock()
	if g.flights < g.limit() && len(g.waiting) == 0 {
		g.flights++
		g.mu.Unlock()
		m.fly(ctx, []*claim{c})
		m.land() //nolint:contextcheck // It flies others' claims: the context of whoever landed must not end them.
		return c.answer
	}
	if len(g.waiting) >= maxWaiting {
		g.mu.Unlock()
		return claimed{err: errCrowded}
	}
	c.done = make(chan struct{})
	g.waiting = append(g.waiting, c)
	g.mu.Unlock()
	select {
	case <-c.done:
		return c.answer
	case <-ctx.Done():
		return claimed{err: ctx.Err()}
	}
}

// land ends a flight, and goes on with those who wait.
func (m *master) land() {
	g := &m.claims
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.waiting) == 0 {
		g.flights--
		return
	}
	go m.shuttle() // under a context of its own: that of whoever landed must not end others' claims
}

// shuttle flies until nobody waits.
func (m *master) shuttle() {
	g := &m.claims
	for {
		g.mu.Lock()
		n := min(len(g.waiting), maxGathered)
		if n == 0 {
			g.flights--
			g.waiting = nil // A burst's memory is not kept.
			g.mu.Unlock()
			return
		}
		group := g.waiting[:n:n]
		g.waiting = g.waiting[n:]
		g.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), flightTimeout)
		m.fly(ctx, group)
		cancel()
		for _, c := range group {
			close(c.done)
		}
	}
}

// fly makes one round trip. The marker is read after the claims: were the store to lose its memory
// between the two, the claims would be gone and the marker missing, never the other way around.
func (m *master) fly(ctx context.Context, group []*claim) {
	pipe := m.client.Pipeline()
	sets := make([]*redis.StatusCmd, len(group))
	for i, c := range group {
		sets[i] = pipe.SetArgs(ctx, m.keys.pin(c.room), c.pin.Encode(), claimArgs())
	}
	var marker *redis.StringCmd
	if key := m.marker.Load(); key != nil {
		marker = pipe.Get(ctx, *key)
	}
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
	var in pin.Generation
	if marker != nil {
		in = m.generationOf(marker.Result())
	}
	for i, c := range group {
		text, err := textOf(sets[i].Result())
		won := errors.Is(err, redis.Nil)
		if won {
			text, err = c.pin.Encode(), nil
		}
		c.answer = claimed{text: text, won: won, in: in, err: err}
	}
}
