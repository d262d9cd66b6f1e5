package chaos

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-rtc/holdfast/backoff"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// A planned move takes some tenths of a second: a death comes before, in or after it.
const drainDeathWithin = 600 * time.Millisecond

func drainSteps() []string {
	return []string{"move.before-swap", "move.after-swap", "move.after-outrank", "move.after-tell"}
}

// drainOne drains a media node that has rooms. Healing has it take rooms again.
func drainOne(ctx context.Context, c *Chaos, w *World) (heal, error) {
	node := c.victims(w, 1)[0]
	f := Fault{Node: node, Role: devcluster.RoleSFU, What: "drained", At: time.Now()}
	if err := c.cluster.DrainAt(ctx, c.page, http.MethodPost, node); err != nil {
		return nil, err
	}
	f.Seen = true
	w.Faults = append(w.Faults, f)
	return func(ctx context.Context) error {
		return c.cluster.DrainAt(context.WithoutCancel(ctx), c.page, http.MethodDelete, node)
	}, nil
}

// armEveryOther has a signaling node die at a step of a planned move, in every other trial.
func armEveryOther(ctx context.Context, c *Chaos, trial int) error {
	c.crowd.armed = ""
	nodes := c.names(ctx, devcluster.RoleSignaling)
	if trial%2 == 0 {
		return nil
	}
	if len(nodes) < 2 {
		return errors.New("there are no two signaling nodes")
	}
	return c.arm(ctx, nodes, drainSteps()[trial/2%len(drainSteps())])
}

func drainUnderFire(ctx context.Context, c *Chaos, w *World) (heal, error) {
	undrain, err := drainOne(ctx, c, w)
	if err != nil {
		return nil, err
	}
	drained := w.Faults[0].Node
	if doomed := c.crowd.armed; doomed != "" {
		return c.awaitArmed(ctx, w, doomed, undrain), nil
	}
	backoff.Sleep(ctx, time.Duration(c.random.Int64N(int64(drainDeathWithin))))
	victim := c.whoDies(ctx, drained)
	if err := c.signal(ctx, w, victim, "killed", syscall.SIGKILL); err != nil {
		return nil, errors.Join(err, undrain(ctx))
	}
	return func(ctx context.Context) error {
		if victim.Name == drained { // the next boot does not drain
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
