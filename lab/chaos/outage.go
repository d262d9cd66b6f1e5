package chaos

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// Pauses of a signaling node: the shortest is noticed by nobody, after the longest its people are elsewhere.
const (
	shortestPause = time.Second
	longestStop   = 14 * time.Second
)

const (
	// silentFor is how long a store is away that fails over with its host.
	silentFor = 2 * time.Second
	// lostWithin is how long after the media node the others of its host are lost at the latest.
	lostWithin = 500 * time.Millisecond
	// aheadBy is far beyond each lease, and below what expires the pins.
	aheadBy = 600 * time.Second
	// jumpBy is beyond the life of a pin.
	jumpBy = 65 * time.Minute
	// vanishAfter leaves leases of the wrong clock with people who then vanish.
	vanishAfter = 3 * time.Second
)

func ofOutages() []scenario {
	return []scenario{
		{
			name: EdgePause, sentence: "a signaling node is stopped with SIGSTOP for 1 to 14 s",
			expect: Expect{Store: true}, soak: true, lasts: between(shortestPause, longestStop),
			acts: []act{{what: "frozen", whom: anySignaling, signal: syscall.SIGSTOP}},
		},
		{
			name: HostLoss, sentence: "the media node of a full room with a line, a signaling node and the store are lost within half a second, and the store is back after 2 s",
			expect: Expect{Moves: true}, soak: true, strike: loseHost,
		},
		{
			name: SentinelFreeze, sentence: "the Sentinel with most connections of signaling nodes is stopped with SIGSTOP, and the store's connections break",
			expect: Expect{Store: true, Joins: true}, hold: hurtFor, soak: true, strike: freezeSentinel,
		},
		{
			name: ClockAhead, sentence: "the store's clock is 600 s ahead for 6 s and comes right again; meanwhile a signaling node dies",
			expect: Expect{Store: true, Joins: true, Ghosts: true}, lasts: between(away, away), soak: true, strike: stepClockAhead,
		},
		{
			name: ClockJump, sentence: "the store's clock jumps forward by more than an hour, and all pins expire",
			expect: Expect{Store: true, Joins: true, Forgets: true}, hold: away, soak: true, prepare: moveSome, strike: jumpClock,
		},
	}
}

func between(least, most time.Duration) func(*Chaos) time.Duration {
	return func(c *Chaos) time.Duration { return least + time.Duration(c.random.Int64N(int64(most-least)+1)) }
}

// The media node goes first: what is lost within half a second may find the room moved, or on its way.
func loseHost(ctx context.Context, c *Chaos, w *World) (heal, error) {
	held := w.Before.holders(w.Capped)
	store, signaling := c.nodes(ctx, devcluster.RoleStore), anySignaling(ctx, c, w)
	if len(held) != 1 || len(store) != 1 || len(signaling) != 1 {
		return nil, errors.New("the room with a cap, the store and a signaling node are not all known")
	}
	media := devcluster.Node{Name: held[0].Node, Role: devcluster.RoleSFU}
	back := c.thaw(store[0].Name)
	err := c.signal(ctx, w, media, "killed", syscall.SIGKILL)
	backoff.Sleep(ctx, time.Duration(c.random.Int64N(int64(lostWithin))))
	if err := errors.Join(err, c.signal(ctx, w, store[0], fmt.Sprintf("silent for %s", silentFor), syscall.SIGSTOP)); err != nil {
		return nil, err
	}
	err = c.signal(ctx, w, signaling[0], "killed", syscall.SIGKILL)
	backoff.Sleep(ctx, silentFor)
	if err := errors.Join(err, back(ctx)); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		return errors.Join(c.restart(media.Name)(ctx), c.restart(signaling[0].Name)(ctx))
	}, nil
}

func freezeSentinel(ctx context.Context, c *Chaos, w *World) (heal, error) {
	signaling := c.nodes(ctx, devcluster.RoleSignaling)
	var most devcluster.Node
	attached := -1
	for _, n := range c.nodes(ctx, devcluster.RoleSentinel) {
		clients, err := c.cluster.SentinelClients(ctx, n, signaling)
		if err != nil {
			return nil, err
		}
		if clients > attached {
			most, attached = n, clients
		}
	}
	if attached < 1 {
		return nil, errors.New("nobody is attached to a Sentinel")
	}
	if err := c.signal(ctx, w, most, fmt.Sprintf("frozen with %d connections of signaling nodes", attached), syscall.SIGSTOP); err != nil {
		return nil, err
	}
	return c.thaw(most.Name), c.cluster.BreakStoreConnections(ctx)
}

// stepClock records a fault that was seen if the clock tells so.
func (c *Chaos) stepClock(ctx context.Context, w *World, by time.Duration, what string) error {
	before, err := c.cluster.StoreTime(ctx)
	if err != nil {
		return err
	}
	f := Fault{Node: "store", Role: devcluster.RoleStore, What: what, At: time.Now()}
	after, err := c.cluster.StepClock(ctx, by)
	if err != nil {
		return err
	}
	f.Seen = after.Sub(before) >= by
	w.Faults = append(w.Faults, f)
	return nil
}

func stepClockAhead(ctx context.Context, c *Chaos, w *World) (heal, error) {
	signaling := anySignaling(ctx, c, w)
	if err := c.stepClock(ctx, w, aheadBy, fmt.Sprintf("%s ahead", aheadBy)); err != nil {
		return nil, err
	}
	right := func(ctx context.Context) error {
		_, err := c.cluster.StepClock(context.WithoutCancel(ctx), -aheadBy)
		return err
	}
	vanish, err := c.haunt(ctx, w, signaling[0])
	if err != nil {
		return nil, errors.Join(err, right(ctx))
	}
	backoff.Sleep(ctx, vanishAfter-time.Since(w.first()))
	err = c.signal(ctx, w, signaling[0], "killed", syscall.SIGKILL)
	vanish()
	if err != nil {
		return nil, errors.Join(err, right(ctx))
	}
	return func(ctx context.Context) error {
		return errors.Join(right(ctx), c.restart(signaling[0].Name)(ctx))
	}, nil
}

// The clock stays where it is: the host's clock was slow before.
func jumpClock(ctx context.Context, c *Chaos, w *World) (heal, error) {
	return func(context.Context) error { return nil }, c.stepClock(ctx, w, jumpBy, fmt.Sprintf("%s ahead, for good", jumpBy))
}

// moveSome moves rooms away from where placement would put them: a claim without a look at their owners finds another node.
func moveSome(ctx context.Context, c *Chaos, _ int) error {
	look := c.look(ctx)
	nodes := c.names(ctx, devcluster.RoleSFU)
	moved := 0
	for _, h := range look.Held {
		if h.Room == c.crowd.capped || h.Room == c.crowd.browserRoom() || h.Room == c.crowd.large || moved == 2 {
			continue
		}
		var others []string
		for _, n := range nodes {
			if n != h.Node {
				others = append(others, n)
			}
		}
		if err := c.cluster.MoveRoomAt(ctx, c.page, h.Room, others[c.random.IntN(len(others))]); err != nil {
			return fmt.Errorf("move %s: %w", h.Room, err)
		}
		moved++
	}
	return nil
}
