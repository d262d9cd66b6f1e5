package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-rtc/holdfast/failpoint"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// Name names a scenario, as on the command line.
type Name string

// The scenarios.
const (
	Kill        Name = "kill"
	Freeze      Name = "freeze"
	StoreKill   Name = "store-kill"
	StorePause  Name = "store-pause"
	EdgeKill    Name = "edge-kill"
	TwoOfThree  Name = "two-of-three"
	DoubleFault Name = "death-during-rehoming"
	Crowd       Name = "crowd"
	Soak        Name = "soak"
)

// heal makes the cluster whole again.
type heal func(context.Context) error

// scenario is one way to hurt a cluster.
type scenario struct {
	sentence string
	expect   Expect
	hold     time.Duration // how long the fault lasts where no room has to move
	prepare  func(ctx context.Context, c *Chaos, trial int) error
	strike   func(ctx context.Context, c *Chaos, w *World) (heal, error)
}

// away is how long a store or an edge is missed: longer than longestPause, and than
// the 300 ms that a join waits for the store.
const away = 6 * time.Second

func scenarios() map[Name]scenario {
	moves, stays := Expect{Moves: true}, Expect{Store: true}
	all := map[Name]scenario{
		Kill:       {"a media node is killed with SIGKILL, and started again when its rooms have moved", moves, 0, nil, killSFU},
		Freeze:     {"a media node is stopped with SIGSTOP until its rooms have moved, and then wakes up believing in them", moves, 0, nil, freezeSFU},
		StoreKill:  {"the store is killed and comes back with nothing in it", stays, away, nil, hurtStore("killed", syscall.SIGKILL)},
		StorePause: {"the store answers nobody for some seconds", stays, away, nil, hurtStore("frozen", syscall.SIGSTOP)},
		EdgeKill:   {"a signaling node is killed; its clients resume at another one", stays, away, nil, killEdge},
		TwoOfThree: {"two media nodes are killed at the same time", moves, 0, nil, killTwo},
		DoubleFault: {
			"a media node is killed, and the signaling node that moves its rooms kills itself at a named step of that", moves, 0,
			armEdge, killUnderArmedEdge,
		},
		Crowd: {"the media node with nearly all rooms is killed", moves, 0, gather, killCrowded},
		Soak:  {"random faults, one after the other", Expect{}, 0, nil, nil},
		Calm:  {"nobody is hurt, while the machine is busy and gossip is lossy", Expect{}, 0, nil, nil},
	}
	maps.Copy(all, networkScenarios())
	return all
}

// soakFaults are those that a soak draws from.
func (o Options) soakFaults() []Name {
	faults := []Name{Kill, Freeze, StoreKill, StorePause, EdgeKill, TwoOfThree, DoubleFault}
	if o.Network != nil {
		faults = append(faults, networkFaults()...)
	}
	return faults
}

// Names lists the scenarios.
func Names() []string {
	return []string{
		string(Kill), string(Freeze), string(StoreKill), string(StorePause), string(EdgeKill), string(TwoOfThree),
		string(DoubleFault), string(Crowd), string(Partition), string(HalfPartition), string(EdgePartition), string(CutEdgeKill),
		string(Loss), string(Delay), string(UDPBlocked), string(ControlBlocked), string(ControlBlockedOne), string(Calm), string(Soak),
	}
}

// signal hurts one process and notes it. The time is taken before, so that what
// is measured from it is never too short.
func (c *Chaos) signal(ctx context.Context, w *World, node string, role devcluster.Role, what string, signal syscall.Signal) error {
	f := Fault{Node: node, Role: role, What: what, At: time.Now()}
	if err := c.cluster.Kill(ctx, node, signal); err != nil {
		return fmt.Errorf("signal %s: %w", node, err)
	}
	f.Seen = true // the supervisor has seen it die, or the signal was delivered
	w.Faults = append(w.Faults, f)
	return nil
}

func killSFU(ctx context.Context, c *Chaos, w *World) (heal, error) {
	victim := c.victims(w, 1)[0]
	return c.restart(victim), c.signal(ctx, w, victim, devcluster.RoleSFU, "killed", syscall.SIGKILL)
}

func freezeSFU(ctx context.Context, c *Chaos, w *World) (heal, error) {
	victim := c.victims(w, 1)[0]
	err := c.signal(ctx, w, victim, devcluster.RoleSFU, "frozen", syscall.SIGSTOP)
	return c.thaw(victim), err
}

func killTwo(ctx context.Context, c *Chaos, w *World) (heal, error) {
	victims := c.victims(w, 2)
	for _, victim := range victims {
		if err := c.signal(ctx, w, victim, devcluster.RoleSFU, "killed", syscall.SIGKILL); err != nil {
			return nil, err
		}
	}
	return c.restart(victims...), nil
}

func hurtStore(what string, signal syscall.Signal) func(context.Context, *Chaos, *World) (heal, error) {
	const store = "store"
	return func(ctx context.Context, c *Chaos, w *World) (heal, error) {
		err := c.signal(ctx, w, store, devcluster.RoleStore, what, signal)
		if signal == syscall.SIGSTOP {
			return c.thaw(store), err
		}
		return c.restart(store), err
	}
}

func killEdge(ctx context.Context, c *Chaos, w *World) (heal, error) {
	victim := c.edges(ctx)[c.random.IntN(2)]
	return c.restart(victim), c.signal(ctx, w, victim, devcluster.RoleSignaling, "killed", syscall.SIGKILL)
}

// The steps at which the double fault's edge dies, one after the other.
func steps() []string { return []string{"rehome.before-swap", "rehome.after-swap", "notify.before"} }

// armEdge gets every socket to a signaling node that will die at a step: were any
// at another one, that one might win the race and do the step.
func armEdge(ctx context.Context, c *Chaos, trial int) error {
	edges := c.edges(ctx)
	step := steps()[(trial-1)%len(steps())]
	c.crowd.step = step
	if err := c.cluster.Kill(ctx, edges[0], syscall.SIGKILL); err != nil {
		return err
	}
	if _, err := c.cluster.StartNode(ctx, edges[0], failpoint.Variable+"="+step+"=exit"); err != nil {
		return err
	}
	if err := c.cluster.Kill(ctx, edges[1], syscall.SIGKILL); err != nil {
		return err
	}
	if err := c.crowd.everybodyAttached(ctx); err != nil {
		return err
	}
	_, err := c.cluster.StartNode(ctx, edges[1])
	return err
}

func killUnderArmedEdge(ctx context.Context, c *Chaos, w *World) (heal, error) {
	doomed, victim := c.edges(ctx)[0], c.victims(w, 1)[0]
	if err := c.signal(ctx, w, victim, devcluster.RoleSFU, "killed", syscall.SIGKILL); err != nil {
		return nil, err
	}
	f := Fault{Node: doomed, Role: devcluster.RoleSignaling, What: "killed by itself at " + c.crowd.step, At: time.Now()}
	f.Seen = poll(ctx, c.options.patience.recover, func() error { return c.dead(ctx, doomed) }) == nil
	w.Faults = append(w.Faults, f)
	return func(ctx context.Context) error {
		if !f.Seen { // what was armed must not stay
			if err := c.cluster.Kill(ctx, doomed, syscall.SIGKILL); err != nil {
				return err
			}
		}
		return c.restart(doomed, victim)(ctx)
	}, nil
}

var errAlive = errors.New("it runs")

func (c *Chaos) dead(ctx context.Context, node string) error {
	status, err := c.cluster.Status(ctx)
	if err != nil {
		return err
	}
	for _, n := range status.Nodes {
		if n.Name == node && n.State == devcluster.StateDead {
			return nil
		}
	}
	return errAlive
}

func (c *Chaos) restart(nodes ...string) heal {
	return func(ctx context.Context) error {
		ctx = context.WithoutCancel(ctx) // a run that is being ended leaves a whole cluster, too
		for _, node := range nodes {
			if _, err := c.cluster.StartNode(ctx, node); err != nil {
				return fmt.Errorf("start %s again: %w", node, err)
			}
		}
		return nil
	}
}

func (c *Chaos) thaw(node string) heal {
	return func(ctx context.Context) error {
		// Also when the run is being ended: a frozen process of somebody's cluster is no way to leave.
		return c.cluster.Kill(context.WithoutCancel(ctx), node, syscall.SIGCONT)
	}
}

// edges names the signaling nodes.
func (c *Chaos) edges(ctx context.Context) []string {
	status, err := c.cluster.Status(ctx)
	if err != nil {
		return []string{"signaling-1", "signaling-2"} // as a cluster of ours names them; the signal will tell
	}
	var names []string
	for _, n := range status.Nodes {
		if n.Role == devcluster.RoleSignaling {
			names = append(names, n.Name)
		}
	}
	return names
}

// victims chooses media nodes that hold rooms: the one with the browsers first, in every other trial the one with
// the large room and else not, else by chance; one with every room only when there is no other. Of several the last one
// holds none where otherwise no room would be left to be spared.
func (c *Chaos) victims(w *World, n int) []string {
	count := make(map[string]int)
	for _, node := range w.Before.Live {
		count[string(node)] = 0
	}
	first, last := "", ""
	for _, h := range w.Before.Held {
		count[h.Node]++
		if h.Room == c.crowd.browserRoom() {
			first = h.Node
		}
		if h.Room == c.crowd.large {
			first, last = h.Node, h.Node
		}
	}
	if last != "" && c.trialNumber%2 == 0 {
		first = ""
	}
	names := sortedKeys(count)
	c.random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	rank := func(name string) int {
		switch {
		case name == first:
			return 0
		case name == last:
			return 4
		case count[name] == 0:
			return 3
		case count[name] == len(w.Before.Held):
			return 2
		default:
			return 1
		}
	}
	stable(names, rank)
	chosen, spared := names[:min(n, len(names))], names[min(n, len(names)):]
	hurt := 0
	for _, name := range chosen {
		hurt += count[name]
	}
	if len(chosen) > 1 && len(spared) > 0 && hurt == len(w.Before.Held) {
		chosen[len(chosen)-1] = spared[0]
	}
	return chosen
}

func stable(names []string, rank func(string) int) {
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
}
