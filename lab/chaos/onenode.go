package chaos

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/ring"
)

// crowded gets all rooms, and is killed.
const crowded = "sfu-1"

// Load reports come every second.
const reportsAfter = 3 * time.Second

// generous ceilings: the ring walk passes over a node with more than its share and a tenth of its ceiling.
func generous() []string {
	return []string{"HOLDFAST_EGRESS_BITS=40000000000", "HOLDFAST_EGRESS_PACKETS=5000000"}
}

// NodeEnv is a scenario's environment, by node.
func NodeEnv(scenario Name) map[string][]string {
	if scenario == Crowd {
		still := []string{"HOLDFAST_NO_RELIEF=true"} // only what a death moves is judged
		return map[string][]string{crowded: generous(), "signaling-1": still, "signaling-2": still}
	}
	return nil
}

// homes is the node of each room: round robin; a crowd's are all on one, with a control on each other node.
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

func (c *crowd) openAll(ctx context.Context, nodes []ring.NodeID) error {
	for i, home := range c.chaos.options.homes(nodes) {
		room := roomOn(nodes, home, fmt.Sprintf("%sroom%d", c.chaos.prefix(), i+1))
		if i == 1 && !c.chaos.options.spreads() {
			c.capped = room
		}
		if err := c.open(ctx, room, c.chaos.options.Peers); err != nil {
			return err
		}
	}
	if c.chaos.options.Large == 0 {
		return nil
	}
	c.large = roomOn(nodes, nodes[0], c.chaos.prefix()+"large")
	if c.chaos.options.spreads() {
		c.capped = c.large
		return c.openSpread(ctx)
	}
	return c.open(ctx, c.large, c.chaos.options.Large)
}

// awaitMeasured waits until the crowded node's report counts what its rooms send, not estimates. It goes on after a limit.
func awaitMeasured(ctx context.Context, c *Chaos, _ int) error {
	_ = steadily(ctx, c.options.patience.settle, func() error {
		look := c.look(ctx)
		sent, rooms := uint64(0), 0
		for _, h := range look.Held {
			if h.Node == crowded {
				sent, rooms = sent+h.EgressBitsPerSecond, rooms+1
			}
		}
		if load := look.Loads[crowded]; rooms < c.options.Rooms || load.EgressBitsPerSecond > sent+sent/5 {
			return fmt.Errorf("%d rooms on %s send %d bits/s, and it counts others", rooms, crowded, sent)
		}
		return nil
	})
	return nil
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
		return c.restart(crowded, generous()...)(ctx)
	}, err
}
