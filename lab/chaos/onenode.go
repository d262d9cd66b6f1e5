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

// crowded is the node that gets all rooms of that scenario, and is killed.
const crowded = "sfu-1"

// reportsAfter covers several load reports of the survivors, one a second.
const reportsAfter = 3 * time.Second

// generous are ceilings that no crowd reaches: the walk passes a node over if it has more than its share and a tenth of
// its ceiling.
func generous() []string {
	return []string{"HOLDFAST_EGRESS_BITS=40000000000", "HOLDFAST_EGRESS_PACKETS=5000000"}
}

// NodeEnv is the environment, by node, that a scenario needs.
func NodeEnv(scenario Name) map[string][]string {
	if scenario == Crowd {
		return map[string][]string{crowded: generous()}
	}
	return nil
}

// homes is the node of each room: round robin; a crowd's all on one, and one more on each other node as a control.
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

// calmLimit bounds the wait until reservations of the last crowd lapse, which takes 30 s.
const calmLimit = 90 * time.Second

// gather opens all rooms on the one node again, once the others have forgotten the last crowd's load.
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

// measured waits until the crowded node reports what its rooms send instead of what they were expected to send. After
// the limit the run goes on.
func (c *Chaos) measured(ctx context.Context) {
	looks := 0
	_ = poll(ctx, c.options.patience.settle, func() error {
		looks++
		look := c.look(ctx)
		sent, rooms := uint64(0), 0
		for _, h := range look.Held {
			if h.Node == crowded {
				sent, rooms = sent+h.EgressBitsPerSecond, rooms+1
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
	err := c.signal(ctx, w, devcluster.Node{Name: crowded, Role: devcluster.RoleSFU}, "killed", syscall.SIGKILL)
	return func(ctx context.Context) error {
		backoff.Sleep(ctx, reportsAfter)
		_, err := c.cluster.StartNode(context.WithoutCancel(ctx), crowded, generous()...)
		return err
	}, err
}
