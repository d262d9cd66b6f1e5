package chaos

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/internal/failpoint"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// A planned move takes some tenths of a second: a death comes before, in or after it.
const drainDeathWithin = 600 * time.Millisecond

func drainSteps() []string {
	return []string{"move.before-swap", stepOpened, "move.after-swap", stepFenced, "move.after-outrank", "move.after-tell"}
}

// A media node dies here: the move's target after opening the room, the source after hearing of it.
const (
	stepOpened = "move.opened"
	stepFenced = "move.fenced"
)

func drainOne(ctx context.Context, c *Chaos, w *World) (heal, error) {
	return c.drain(ctx, w, c.victims(w, 1)[0])
}

// Healing ends the drain.
func (c *Chaos) drain(ctx context.Context, w *World, node string) (heal, error) {
	f := Fault{Node: node, Role: devcluster.RoleSFU, What: "drained", At: time.Now(), Seen: true}
	if err := c.cluster.DrainAt(ctx, c.page, http.MethodPost, node); err != nil {
		return nil, err
	}
	w.Faults = append(w.Faults, f)
	return func(ctx context.Context) error {
		return c.cluster.DrainAt(context.WithoutCancel(ctx), c.page, http.MethodDelete, node)
	}, nil
}

// armEveryOther makes a node die at a step of a planned move, in every other trial.
func armEveryOther(ctx context.Context, c *Chaos, trial int) error {
	c.crowd.armed, c.crowd.step = "", ""
	if trial%2 == 0 {
		return nil
	}
	step := drainSteps()[trial/2%len(drainSteps())]
	if step == stepOpened || step == stepFenced {
		return c.armMedia(ctx, step)
	}
	nodes := c.names(ctx, devcluster.RoleSignaling)
	if len(nodes) < 2 {
		return errors.New("there are no two signaling nodes")
	}
	return c.arm(ctx, nodes, step)
}

// The restart has emptied the media node; to be a source it is given two rooms.
func (c *Chaos) armMedia(ctx context.Context, step string) error {
	nodes := c.names(ctx, devcluster.RoleSFU)
	doomed := nodes[c.random.IntN(len(nodes))]
	c.crowd.armed, c.crowd.step = doomed, step
	if err := c.cluster.Kill(ctx, doomed, syscall.SIGKILL); err != nil {
		return err
	}
	if err := c.restart(doomed, failpoint.Variable+"="+step+"=exit")(ctx); err != nil {
		return err
	}
	if err := c.crowd.everybodyAttached(ctx); err != nil || step == stepOpened {
		return err
	}
	for range 2 {
		if err := poll(ctx, c.options.patience.settle, func() error { return c.giveRoom(ctx, doomed) }); err != nil {
			return err
		}
	}
	return nil
}

func (c *Chaos) giveRoom(ctx context.Context, to string) error {
	rooms, err := c.cluster.RoomsAt(ctx, c.page)
	if err != nil {
		return err
	}
	for _, r := range rooms {
		if r.Node != to && c.counts(r.Room) {
			return c.cluster.MoveRoomAt(ctx, c.page, r.Room, to)
		}
	}
	return errors.New("no other node has a room")
}

func drainUnderFire(ctx context.Context, c *Chaos, w *World) (heal, error) {
	doomed, began := c.crowd.armed, time.Now()
	drained := c.victims(w, 1)[0]
	switch c.crowd.step {
	case stepFenced:
		drained = doomed
	case stepOpened: // it dies of the first room; the drain must do without it
		w.Asked++
		room := slices.IndexFunc(w.Before.Held, func(h Held) bool { return h.Node == drained })
		_ = c.cluster.MoveRoomAt(ctx, c.page, w.Before.Held[room].Room, doomed)
	}
	undrain, err := c.drain(ctx, w, drained)
	if err != nil {
		return nil, err
	}
	if doomed == drained { // the next boot does not drain
		undrain = func(context.Context) error { return nil }
	}
	if doomed != "" {
		w.Faults[0].At = began
		return c.awaitArmed(ctx, w, doomed, undrain), nil
	}
	backoff.Sleep(ctx, time.Duration(c.random.Int64N(int64(drainDeathWithin))))
	victim := c.whoDies(ctx, drained)
	if err := c.signal(ctx, w, victim, "killed", syscall.SIGKILL); err != nil {
		return nil, errors.Join(err, undrain(ctx))
	}
	return func(ctx context.Context) error {
		if victim.Name == drained { // as above
			return c.restart(drained)(ctx)
		}
		return errors.Join(c.restart(victim.Name)(ctx), undrain(ctx))
	}, nil
}

// whoDies is the drained node, another media node, or a signaling node, in turn.
func (c *Chaos) whoDies(ctx context.Context, drained string) devcluster.Node {
	role := devcluster.RoleSFU
	if c.trialNumber/2%3 == 2 {
		role = devcluster.RoleSignaling
	}
	nodes := slices.DeleteFunc(c.nodes(ctx, role), func(n devcluster.Node) bool {
		return (n.Name == drained) != (c.trialNumber/2%3 == 0)
	})
	return nodes[c.random.IntN(len(nodes))]
}
