package history

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// caller is one thread of a schedule. Its random numbers and the instants at which it wakes
// are its own, so that a schedule with one thread less is the same for all others, and
// no two threads ever wake at one instant: who goes first is never left to chance.
type caller struct {
	who       string
	id        int
	random    *rand.Rand
	tried     []write        // what the operation under way asked the store for
	asked     bool           // whether a pin owner asked the store since this was reset
	failed    bool           // whether the store failed to answer since this was reset
	signaling *signalingNode // for which it writes, if it does
	what      kind           // of the call under way
	about     pin.Pin        // what that call wants moved
	why       *justification // what it has against nodes
}

// grid is how far apart the instants of one caller are. The instants of all callers lie between.
const grid = 10 * time.Microsecond

func newCaller(seed uint64, who string, id int) *caller {
	return &caller{who: who, id: id, random: rand.New(rand.NewPCG(seed, uint64(id)))}
}

type callerKey struct{}

// with gives ctx to the caller, so that the store learns who asks.
func (c *caller) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// asking is who asks.
func asking(ctx context.Context) *caller {
	c, _ := ctx.Value(callerKey{}).(*caller)
	return c
}

// pause waits for d, to the caller's next instant, or until ctx ends.
func (c *caller) pause(ctx context.Context, d time.Duration) error {
	return c.until(ctx, time.Now().Add(d))
}

// until waits for the caller's first instant after at.
func (c *caller) until(ctx context.Context, at time.Time) error {
	offset := time.Duration(c.id) % grid
	at = at.Add(-offset).Truncate(grid).Add(grid + offset)
	if deadline, ok := ctx.Deadline(); ok && deadline.Equal(at) {
		at = at.Add(grid)
	}
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// between is a random duration.
func (c *caller) between(least, most time.Duration) time.Duration {
	return least + time.Duration(c.random.Int64N(int64(most-least)+1))
}

// chance is true in percent of a hundred cases.
func (c *caller) chance(percent int) bool { return c.random.IntN(100) < percent }
