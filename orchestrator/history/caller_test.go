package history

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
)

// caller is one goroutine of a schedule. It has random numbers and wake-up instants of its own, so that removing
// another caller changes nothing for it, and no two wake at one instant.
type caller struct {
	who       string
	id        int
	random    *rand.Rand
	tried     []write        // asked of the store by the present operation
	asked     bool           // a pin owner asked the store since this was reset
	failed    bool           // the store did not answer since this was reset
	signaling *signalingNode // of the call under way
	what      kind           // of the call under way
	about     pin.Pin        // what that call wants moved
	why       *justification
}

// grid is the distance of one caller's instants; those of the others lie between.
const grid = 10 * time.Microsecond

func newCaller(seed uint64, who string, id int) *caller {
	return &caller{who: who, id: id, random: rand.New(rand.NewPCG(seed, uint64(id)))}
}

type callerKey struct{}

// with lets the store learn who asks.
func (c *caller) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

func asking(ctx context.Context) *caller {
	c, _ := ctx.Value(callerKey{}).(*caller)
	return c
}

// pause waits for d and to the next instant.
func (c *caller) pause(ctx context.Context, d time.Duration) error {
	return c.until(ctx, time.Now().Add(d))
}

// until waits for the first instant after at.
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

// chance is true in percent of all cases.
func (c *caller) chance(percent int) bool { return c.random.IntN(100) < percent }
