package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/failpoint"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/hosts"
)

// Network hurts and mends the cables of the nodes' hosts. Mend returns how many packets were hurt, or at least whether any was.
type Network interface {
	Hurt(node string, f hosts.Fault) error
	Mend(node string) (packets uint64, err error)
}

// act does one thing to each of some nodes: a signal to the process, or a fault of the cable.
type act struct {
	what   string
	whom   func(ctx context.Context, c *Chaos, w *World) []devcluster.Node
	signal syscall.Signal
	fault  func(ctx context.Context, c *Chaos, w *World, node string) hosts.Fault
}

func (c *Chaos) strike(ctx context.Context, w *World, s scenario) (heal, error) {
	if s.strike != nil {
		return s.strike(ctx, c, w)
	}
	var heals []heal
	healAll := func(ctx context.Context) error {
		var errs []error
		for _, one := range heals {
			errs = append(errs, one(ctx))
		}
		return errors.Join(errs...)
	}
	for _, a := range s.acts {
		for _, node := range a.whom(ctx, c, w) {
			one, err := c.act(ctx, w, a, node)
			if err != nil {
				return nil, errors.Join(err, healAll(ctx))
			}
			heals = append(heals, one)
		}
	}
	if s.expect.Smooth {
		return func(ctx context.Context) error { return c.awaitLeaving(ctx, w.Faults[0].Node, healAll) }, nil
	}
	return healAll, nil
}

func (c *Chaos) act(ctx context.Context, w *World, a act, node devcluster.Node) (heal, error) {
	switch {
	case a.fault != nil:
		return c.onCable(w, node, a.what, a.fault(ctx, c, w, node.Name))
	case a.signal == syscall.SIGSTOP:
		return c.thaw(node.Name), c.signal(ctx, w, node, a.what, a.signal)
	default:
		return c.restart(node.Name), c.signal(ctx, w, node, a.what, a.signal)
	}
}

// The time is taken before the signal, so that gaps measured from it are never too short.
func (c *Chaos) signal(ctx context.Context, w *World, node devcluster.Node, what string, signal syscall.Signal) error {
	f := Fault{Node: node.Name, Role: node.Role, What: what, At: time.Now()}
	if err := c.cluster.Kill(ctx, node.Name, signal); err != nil {
		return fmt.Errorf("signal %s: %w", node.Name, err)
	}
	f.Seen = true // the supervisor saw it die, or it was delivered
	w.Faults = append(w.Faults, f)
	return nil
}

// The fault counts as seen if Mend reports hurt packets.
func (c *Chaos) onCable(w *World, node devcluster.Node, what string, how hosts.Fault) (heal, error) {
	f := Fault{Node: node.Name, Role: node.Role, What: what, At: time.Now()}
	if err := c.options.Network.Hurt(node.Name, how); err != nil {
		return nil, fmt.Errorf("hurt the cable of %s: %w", node.Name, err)
	}
	w.Faults = append(w.Faults, f)
	at := len(w.Faults) - 1
	return func(context.Context) error {
		packets, err := c.options.Network.Mend(node.Name)
		if err != nil {
			return fmt.Errorf("mend the cable of %s: %w", node.Name, err)
		}
		w.Faults[at].Seen = packets > 0
		w.Faults[at].What = fmt.Sprintf("%s for %.1f s (%d packets)", what, time.Since(f.At).Seconds(), packets)
		if !c.cluster.Supervised() { // the number of packets is unknown
			w.Faults[at].What = fmt.Sprintf("%s for %.1f s", what, time.Since(f.At).Seconds())
		}
		return nil
	}, nil
}

// restart and thaw work also after ctx ended, so that no node stays dead or frozen.
func (c *Chaos) restart(node string, env ...string) heal {
	return func(ctx context.Context) error {
		if _, err := c.cluster.StartNode(context.WithoutCancel(ctx), node, env...); err != nil {
			return fmt.Errorf("start %s again: %w", node, err)
		}
		return nil
	}
}

func (c *Chaos) thaw(node string) heal {
	return func(ctx context.Context) error {
		return c.cluster.Kill(context.WithoutCancel(ctx), node, syscall.SIGCONT)
	}
}

func (c *Chaos) nodes(ctx context.Context, roles ...devcluster.Role) []devcluster.Node {
	status, err := c.cluster.Status(ctx)
	if err != nil {
		return nil // the verdicts will tell
	}
	return slices.DeleteFunc(status.Nodes, func(n devcluster.Node) bool { return !slices.Contains(roles, n.Role) })
}

func (c *Chaos) names(ctx context.Context, roles ...devcluster.Role) []string {
	var names []string
	for _, n := range c.nodes(ctx, roles...) {
		names = append(names, n.Name)
	}
	return names
}

func all(roles ...devcluster.Role) func(context.Context, *Chaos, *World) []devcluster.Node {
	return func(ctx context.Context, c *Chaos, _ *World) []devcluster.Node { return c.nodes(ctx, roles...) }
}

func anySignaling(ctx context.Context, c *Chaos, _ *World) []devcluster.Node {
	nodes := c.nodes(ctx, devcluster.RoleSignaling)
	c.random.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
	return nodes[:min(1, len(nodes))]
}

func victims(n int) func(context.Context, *Chaos, *World) []devcluster.Node {
	return func(_ context.Context, c *Chaos, w *World) []devcluster.Node {
		var nodes []devcluster.Node
		for _, name := range c.victims(w, n) {
			nodes = append(nodes, devcluster.Node{Name: name, Role: devcluster.RoleSFU})
		}
		return nodes
	}
}

// fromAll cuts a node off from all others of some roles; with none given, from everybody.
func fromAll(roles ...devcluster.Role) func(context.Context, *Chaos, *World, string) hosts.Fault {
	return func(ctx context.Context, c *Chaos, _ *World, node string) hosts.Fault {
		return hosts.Fault{From: slices.DeleteFunc(c.names(ctx, roles...), func(name string) bool { return name == node })}
	}
}

func blockControl(signaling int) act {
	return act{
		what: fmt.Sprintf("not reached at its control port by %d signaling nodes", signaling), whom: victims(1),
		fault: func(ctx context.Context, c *Chaos, _ *World, node string) hosts.Fault {
			from := c.names(ctx, devcluster.RoleSignaling)
			c.random.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
			f := hosts.Fault{From: from[:min(signaling, len(from))]}
			for _, n := range c.nodes(ctx, devcluster.RoleSFU) {
				if n.Name == node {
					address, _ := netip.ParseAddrPort(n.Addresses[child.AddressControl]) // a cut of everything fails the verdicts
					f.Port = address.Port()
				}
			}
			return f
		},
	}
}

// leaveLimit bounds the leaving of a media node that nobody reaches: 7 s to a dead stream, 10 s of waiting, 5 s of media.
const leaveLimit = 40 * time.Second

// awaitLeaving waits for a media node to leave, mends, and starts the node again.
func (c *Chaos) awaitLeaving(ctx context.Context, node string, mend heal) error {
	left := poll(ctx, leaveLimit, func() error { return c.dead(ctx, node) })
	if err := mend(ctx); err != nil || left != nil {
		return err
	}
	return c.restart(node)(ctx)
}

func steps() []string { return []string{"rehome.before-swap", "rehome.after-swap", "notify.before"} }

// armSignaling makes one signaling node die at a step. All sockets move to it: another node could do the step first.
func armSignaling(ctx context.Context, c *Chaos, trial int) error {
	nodes := c.names(ctx, devcluster.RoleSignaling)
	if len(nodes) < 2 {
		return errors.New("there are no two signaling nodes")
	}
	return c.arm(ctx, nodes, steps()[(trial-1)%len(steps())])
}

func (c *Chaos) arm(ctx context.Context, nodes []string, step string) error {
	c.crowd.armed, c.crowd.step = nodes[0], step
	if err := c.cluster.Kill(ctx, nodes[0], syscall.SIGKILL); err != nil {
		return err
	}
	if _, err := c.cluster.StartNode(ctx, nodes[0], failpoint.Variable+"="+c.crowd.step+"=exit"); err != nil {
		return err
	}
	if err := c.cluster.Kill(ctx, nodes[1], syscall.SIGKILL); err != nil {
		return err
	}
	if err := c.crowd.everybodyAttached(ctx); err != nil {
		return err
	}
	_, err := c.cluster.StartNode(ctx, nodes[1])
	return err
}

func killUnderArmedSignaling(ctx context.Context, c *Chaos, w *World) (heal, error) {
	doomed := c.crowd.armed
	heal, err := c.strike(ctx, w, scenario{acts: []act{{what: "killed", whom: victims(1), signal: syscall.SIGKILL}}})
	if err != nil {
		return nil, err
	}
	return c.awaitArmed(ctx, w, doomed, heal), nil
}

// awaitArmed waits until the armed node has died. Healing starts it again, before the rest.
func (c *Chaos) awaitArmed(ctx context.Context, w *World, doomed string, rest heal) heal {
	role := devcluster.RoleSignaling
	if slices.Contains(c.names(ctx, devcluster.RoleSFU), doomed) {
		role = devcluster.RoleSFU
	}
	f := Fault{Node: doomed, Role: role, What: "killed by itself at " + c.crowd.step, At: time.Now()}
	f.Seen = poll(ctx, c.options.patience.recover, func() error { return c.dead(ctx, doomed) }) == nil
	w.Faults = append(w.Faults, f)
	return func(ctx context.Context) error {
		if !f.Seen { // disarm it
			if err := c.cluster.Kill(ctx, doomed, syscall.SIGKILL); err != nil {
				return err
			}
		}
		return errors.Join(c.restart(doomed)(ctx), rest(ctx))
	}
}

func (c *Chaos) dead(ctx context.Context, node string) error {
	for _, n := range c.nodes(ctx, devcluster.RoleSFU, devcluster.RoleSignaling) {
		if n.Name == node && n.State == devcluster.StateDead {
			return nil
		}
	}
	return errors.New("it runs")
}

// victims chooses media nodes with rooms: first the browsers' node, in every other trial that of the large or else the capped room.
// A node with every room is chosen only if there is no other. Several nodes never hold all rooms, so that one room is spared.
func (c *Chaos) victims(w *World, n int) []string {
	count := make(map[string]int)
	for _, node := range w.Before.Live {
		count[string(node)] = 0
	}
	first, last := "", ""
	for _, h := range w.Before.Held {
		count[h.Node]++
		if h.Room == c.crowd.capped && first == "" && c.trialNumber%2 == 1 {
			first = h.Node
		}
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
	names := slices.Sorted(maps.Keys(count))
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
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
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
