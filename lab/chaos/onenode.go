package chaos

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-rtc/holdfast/backoff"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/ring"
)

// crowded is the node on which the scenario of that name puts all its rooms, and which
// it kills.
const crowded = "sfu-1"

// reportsAfter is how long the survivors of a crowd are watched when everybody is back: nodes
// report their load every second.
const reportsAfter = 3 * time.Second

// generous is the environment of a node that takes any number of rooms. The walk passes a node over
// once it has a tenth of its ceiling and more than its share, which fifty rooms of four, as they
// are charged when they open, are of any real one.
func generous() []string {
	return []string{"HOLDFAST_EGRESS_BITS=40000000000", "HOLDFAST_EGRESS_PACKETS=5000000"}
}

// NodeEnv is the environment by node that a cluster needs for a scenario.
func NodeEnv(scenario Name) map[string][]string {
	if scenario == Crowd {
		return map[string][]string{crowded: generous()}
	}
	return nil
}

// homes says which node each room is named for: one after the other, but a crowd's all on one, and
// one more on each other node, whose people should notice nothing.
func (o Options) homes(nodes []ring.NodeID) []ring.NodeID {
	var homes []ring.NodeID
	for i := range o.Rooms {
		if o.Scenario == Crowd {
			homes = append(homes, crowded)
		} else {
			homes = append(homes, nodes[i%len(nodes)])
		}
	}
	if o.Scenario == Crowd {
		homes = append(homes, slices.DeleteFunc(slices.Clone(nodes), func(n ring.NodeID) bool { return n == crowded })...)
	}
	return homes
}

// openAll lets everybody in; the rooms' names tell the round.
func (c *crowd) openAll(ctx context.Context, nodes []ring.NodeID, round string) error {
	for i, home := range c.chaos.options.homes(nodes) {
		if err := c.open(ctx, roomOn(nodes, home, fmt.Sprintf("%s%sroom%d", c.chaos.prefix(), round, i+1)), c.chaos.options.Peers); err != nil {
			return err
		}
	}
	if c.chaos.options.Large == 0 {
		return nil
	}
	c.large = roomOn(nodes, nodes[0], c.chaos.prefix()+"large")
	return c.open(ctx, c.large, c.chaos.options.Large)
}

// calmLimit bounds the wait until nodes have forgotten a crowd: what rooms reserve lapses in 30 s.
const calmLimit = 90 * time.Second

// gather lets everybody come to the one node again, whose rooms the last trial has spread, once
// the others have forgotten what those rooms reserved.
func gather(ctx context.Context, c *Chaos, trial int) error {
	if trial == 1 {
		c.measured(ctx)
		return nil
	}
	status, err := c.cluster.Status(ctx)
	if err != nil {
		return err
	}
	for _, p := range slices.Clone(c.crowd.people) {
		c.crowd.close(p.room)
	}
	err = poll(ctx, calmLimit, func() error {
		for node, load := range c.look(ctx).Loads {
			if load.EgressBitsPerSecond > load.CeilingBitsPerSecond/20 || load.EgressPacketsPerSecond > load.CeilingPacketsPerSecond/20 {
				return fmt.Errorf("%s still has the last crowd's load", node)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := c.crowd.openAll(ctx, mediaNodes(status), fmt.Sprintf("t%d-", trial)); err != nil {
		return err
	}
	c.measured(ctx)
	return nil
}

// measured waits until the crowded node counts what its rooms send, and no longer what they were expected to: a room
// is judged by that when it moves. Signaling nodes hear of it a moment later. Where that does not come, the run goes on.
func (c *Chaos) measured(ctx context.Context) {
	looks := 0
	_ = poll(ctx, c.options.patience.settle, func() error {
		looks++
		look := c.look(ctx)
		sent, rooms := uint64(0), 0
		for _, h := range look.Held {
			if h.Node == crowded {
				sent, rooms = sent+h.Egress, rooms+1
			}
		}
		if load := look.Loads[crowded]; rooms < c.options.Rooms || load.EgressBitsPerSecond > sent+sent/5 {
			looks = 0
		}
		if looks < attachedFor {
			return fmt.Errorf("%d rooms on %s send %d bits/s, and it counts others", rooms, crowded, sent)
		}
		return nil
	})
}

func killCrowded(ctx context.Context, c *Chaos, w *World) (heal, error) {
	on := 0
	for _, h := range w.Before.Held {
		if h.Node == crowded {
			on++
		}
	}
	if on < c.options.Rooms {
		return nil, fmt.Errorf("only %d of %d rooms are on %s: start its cluster with --node-env %s:%s --node-env %s:%s",
			on, c.options.Rooms, crowded, crowded, generous()[0], crowded, generous()[1])
	}
	err := c.signal(ctx, w, crowded, devcluster.RoleSFU, "killed", syscall.SIGKILL)
	return func(ctx context.Context) error {
		backoff.Sleep(ctx, reportsAfter)
		_, err := c.cluster.StartNode(context.WithoutCancel(ctx), crowded, generous()...)
		return err
	}, err
}
