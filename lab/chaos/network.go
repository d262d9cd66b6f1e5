package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
)

// The scenarios that hurt a node's cable. They need a cluster each of whose nodes is a host of
// its own.
const (
	Partition     Name = "partition"
	HalfPartition Name = "half-partition"
	EdgePartition Name = "edge-partition"
	CutEdgeKill   Name = "edge-partition-kill"
	Loss          Name = "loss"
	Delay         Name = "delay"

	UDPBlocked        Name = "udp-blocked"
	ControlBlocked    Name = "control-blocked"
	ControlBlockedOne Name = "control-blocked-one"
)

// Network hurts the cables of the nodes' hosts.
type Network interface {
	// Cut has packets between the node and the others vanish, both ways and without a word to
	// anybody; all of its packets when no others are named.
	Cut(node string, others ...string) error
	// CutUDP is Cut of datagrams only, CutPort of what a TCP port of the node sends and gets.
	CutUDP(node string, others ...string) error
	CutPort(node string, port uint16, others ...string) error
	// Lose has so many of a hundred packets vanish, both ways.
	Lose(node string, percent int) error
	// Delay makes every packet late, both ways.
	Delay(node string, by time.Duration) error
	// Mend ends what is done to the node's cable and says how many packets it was done to.
	Mend(node string) (packets uint64, err error)
}

// Long cuts: on both sides gossip has given up those on the other. aftermath is how long is watched
// whether anything goes back.
const (
	shortestLongCut = 8 * time.Second
	longestLongCut  = 16 * time.Second
	aftermath       = 5 * time.Second
)

// hurtFor is how long packets are lost or late: gossip gives a node up in less than a third of it.
const hurtFor = 10 * time.Second

// blockedFor is how long one signaling node does not reach a media node. The media node notices after 15 s (gRPC's
// keepalive) that it is gone, and 30 s later gives up the people whom it has not handed over.
const blockedFor = 50 * time.Second

// leaveLimit bounds the wait for the end of a media node that leaves because nobody reaches its control port: it counts a
// dead stream as a watcher for 7 s, waits 10 s, and goes on with its media for 5 s. Its rooms may have moved before that.
const leaveLimit = 40 * time.Second

// networkScenarios are those of them that Names lists.
func networkScenarios() map[Name]scenario {
	moves, stays := Expect{Moves: true, Returns: true}, Expect{Stays: true}
	return map[Name]scenario{
		Partition: {"a media node is cut off from everybody until its rooms have moved", moves, 0, nil, cutSFU(false)},
		HalfPartition: {
			"a media node is cut off from the other nodes and the store, while people still reach it, until its rooms have moved",
			moves, 0, nil, cutSFU(true),
		},
		EdgePartition: {
			sentence: "a signaling node is cut off from all media nodes, and from nobody else",
			expect:   Expect{Store: true}, hold: away, strike: cutEdge,
		},
		CutEdgeKill: {
			sentence: "a signaling node is cut off from all media nodes, and from nobody else, and a media node is killed in that moment",
			expect:   Expect{Moves: true}, strike: killBehindCutEdge,
		},
		Loss: {"some of a media node's packets are lost", stays, hurtFor, nil, hurtCable("lossy", func(c *Chaos, node string) error {
			return c.options.Network.Lose(node, c.options.Percent)
		})},
		Delay: {"all of a media node's packets are late", stays, hurtFor, nil, hurtCable("slow", func(c *Chaos, node string) error {
			return c.options.Network.Delay(node, c.options.Delay)
		})},
		UDPBlocked: {"no UDP passes between any two nodes, only TCP; people's media does", stays, hurtFor, nil, blockUDP},
		ControlBlocked: {
			"no signaling node reaches the control port of a media node, until its rooms have moved",
			Expect{Moves: true, Smooth: true},
			0, nil, blockControl(2),
		},
		ControlBlockedOne: {"one signaling node does not reach the control port of a media node", stays, blockedFor, nil, blockControl(1)},
	}
}

// NeedsHosts says whether a scenario hurts cables.
func NeedsHosts(name Name) bool {
	_, known := networkScenarios()[name]
	return known
}

// networkFaults are those that a soak draws from, besides, where nodes are hosts.
func networkFaults() []Name {
	return []Name{Partition, HalfPartition, EdgePartition, CutEdgeKill, Loss, Delay, UDPBlocked, ControlBlocked, ControlBlockedOne}
}

// cutSFU cuts a media node off, from all but people or from everybody.
func cutSFU(peopleReachIt bool) func(context.Context, *Chaos, *World) (heal, error) {
	return func(ctx context.Context, c *Chaos, w *World) (heal, error) {
		w.Lasts = c.cutLasts()
		victim, what := c.victims(w, 1)[0], "cut off"
		var others []string
		if peopleReachIt {
			what = "cut off from the other nodes and the store"
			for _, n := range c.nodes(ctx) {
				if n.Name != victim && n.Role != devcluster.RoleFront {
					others = append(others, n.Name)
				}
			}
		}
		return c.onCable(w, victim, devcluster.RoleSFU, what, func() error { return c.options.Network.Cut(victim, others...) })
	}
}

// cutLasts is how long a cut lasts at least: as wanted, and in a soak every other one long.
func (c *Chaos) cutLasts() time.Duration {
	if c.options.Cut > 0 || c.options.Scenario != Soak || c.random.IntN(2) == 0 {
		return c.options.Cut
	}
	return shortestLongCut + time.Duration(c.random.Int64N(int64(longestLongCut-shortestLongCut)))
}

// cutEdge cuts a signaling node off from the media nodes.
func cutEdge(ctx context.Context, c *Chaos, w *World) (heal, error) {
	w.Lasts = c.cutLasts()
	return cutFromMedia(ctx, c, w)
}

func cutFromMedia(ctx context.Context, c *Chaos, w *World) (heal, error) {
	victim := c.edges(ctx)[c.random.IntN(2)]
	var others []string
	for _, n := range c.nodes(ctx) {
		if n.Role == devcluster.RoleSFU {
			others = append(others, n.Name)
		}
	}
	return c.onCable(w, victim, devcluster.RoleSignaling, "cut off from the media nodes", func() error {
		return c.options.Network.Cut(victim, others...)
	})
}

// killBehindCutEdge kills a media node of which a signaling node learns nothing any more.
func killBehindCutEdge(ctx context.Context, c *Chaos, w *World) (heal, error) {
	mend, err := cutFromMedia(ctx, c, w)
	if err != nil {
		return nil, err
	}
	victim := c.victims(w, 1)[0]
	restart := c.restart(victim)
	err = c.signal(ctx, w, victim, devcluster.RoleSFU, "killed", syscall.SIGKILL)
	return func(ctx context.Context) error { return errors.Join(mend(ctx), restart(ctx)) }, err
}

// blockUDP leaves nodes nothing but TCP among themselves.
func blockUDP(ctx context.Context, c *Chaos, w *World) (heal, error) {
	var nodes []devcluster.Node
	var names []string
	for _, n := range c.nodes(ctx) {
		if n.Role == devcluster.RoleSFU || n.Role == devcluster.RoleSignaling {
			nodes, names = append(nodes, n), append(names, n.Name)
		}
	}
	var mends []heal
	mendAll := func(ctx context.Context) error {
		var errs []error
		for _, mend := range mends {
			errs = append(errs, mend(ctx))
		}
		return errors.Join(errs...)
	}
	for _, n := range nodes {
		mend, err := c.onCable(w, n.Name, n.Role, "without UDP", func() error { return c.options.Network.CutUDP(n.Name, names...) })
		if err != nil {
			return nil, errors.Join(err, mendAll(ctx))
		}
		mends = append(mends, mend)
	}
	return mendAll, nil
}

// blockControl cuts so many signaling nodes off from the control port of a media node. A node that has left for that
// is started again.
func blockControl(edges int) func(context.Context, *Chaos, *World) (heal, error) {
	return func(ctx context.Context, c *Chaos, w *World) (heal, error) {
		victim, from := c.victims(w, 1)[0], c.edges(ctx)
		c.random.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
		from = from[:min(edges, len(from))]
		port, err := c.controlPort(ctx, victim)
		if err != nil {
			return nil, err
		}
		mend, err := c.onCable(w, victim, devcluster.RoleSFU, "not reached at its control port by "+strings.Join(from, " and "), func() error {
			return c.options.Network.CutPort(victim, port, from...)
		})
		return func(ctx context.Context) error {
			left := errAlive
			if edges > 1 {
				left = poll(ctx, leaveLimit, func() error { return c.dead(ctx, victim) }) // its media goes on for a while
			}
			if err := mend(ctx); err != nil || left != nil {
				return err
			}
			return c.restart(victim)(ctx)
		}, err
	}
}

func (c *Chaos) controlPort(ctx context.Context, node string) (uint16, error) {
	for _, n := range c.nodes(ctx) {
		if n.Name == node {
			address, err := netip.ParseAddrPort(n.Addresses[devcluster.AddressControl])
			return address.Port(), err
		}
	}
	return 0, fmt.Errorf("the control port of %s is not known", node)
}

// hurtCable does something to a media node's cable that moves nothing.
func hurtCable(what string, hurt func(*Chaos, string) error) func(context.Context, *Chaos, *World) (heal, error) {
	return func(_ context.Context, c *Chaos, w *World) (heal, error) {
		victim := c.victims(w, 1)[0]
		return c.onCable(w, victim, devcluster.RoleSFU, what, func() error { return hurt(c, victim) })
	}
}

// onCable does something to a node's cable. The fault is taken as of the moment before that. It counts as
// seen when packets were hurt, which is known when it is mended.
func (c *Chaos) onCable(w *World, node string, role devcluster.Role, what string, hurt func() error) (heal, error) {
	f := Fault{Node: node, Role: role, What: what, At: time.Now()}
	if err := hurt(); err != nil {
		return nil, fmt.Errorf("hurt the cable of %s: %w", node, err)
	}
	w.Faults = append(w.Faults, f)
	at := len(w.Faults) - 1
	return func(context.Context) error {
		packets, err := c.options.Network.Mend(node)
		if err != nil {
			return fmt.Errorf("mend the cable of %s: %w", node, err)
		}
		w.Faults[at].Seen = packets > 0
		w.Faults[at].What = fmt.Sprintf("%s for %.1f s (%d packets)", what, time.Since(f.At).Seconds(), packets)
		return nil
	}, nil
}

// newStack makes what all people share: they are on this machine with the nodes, or on a host beside theirs.
func (c *crowd) newStack() (*peer.Stack, error) {
	video := peer.VideoLight
	if c.chaos.options.Cameras >= 0 {
		video = peer.VideoSparse
	}
	if c.chaos.options.Network != nil {
		return peer.NewRemoteStack(video)
	}
	return peer.NewStack(video, true)
}

// nodes are those of the cluster.
func (c *Chaos) nodes(ctx context.Context) []devcluster.Node {
	status, err := c.cluster.Status(ctx)
	if err != nil {
		return nil // the verdicts will tell
	}
	return slices.DeleteFunc(status.Nodes, func(n devcluster.Node) bool { return n.State != devcluster.StateRunning })
}
