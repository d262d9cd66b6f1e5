package chaos

import (
	"context"
	"slices"
	"syscall"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/hosts"
)

// Name is a scenario's, as on the command line.
type Name string

// Scenarios that code names.
const (
	EdgePause      Name = "edge-pause"
	HostLoss       Name = "host-loss"
	SentinelFreeze Name = "sentinel-freeze"
	ClockAhead     Name = "clock-ahead"
	ClockJump      Name = "clock-jump"

	Kill       Name = "kill"
	Freeze     Name = "freeze"
	StoreKill  Name = "store-kill"
	StorePause Name = "store-pause"

	DoubleFault       Name = "death-during-rehoming"
	Drain             Name = "drain"
	DrainCrash        Name = "death-during-drain"
	Rolling           Name = "rolling"
	Crowd             Name = "crowd"
	Partition         Name = "partition"
	HalfPartition     Name = "half-partition"
	Loss              Name = "loss"
	Delay             Name = "delay"
	ControlBlockedOne Name = "control-blocked-one"
	BranchKill        Name = "branch-kill"
	OwnerKill         Name = "owner-kill"
	BranchDrain       Name = "branch-drain"
	OwnerDrain        Name = "owner-drain"
	BranchFreeze      Name = "branch-freeze"
	OwnerFreeze       Name = "owner-freeze"
	LinkCut           Name = "link-cut"
	LinkLoss          Name = "link-loss"
	Calm              Name = "calm"
	Soak              Name = "soak"
)

type heal func(context.Context) error

type scenario struct {
	name     Name
	sentence string
	expect   Expect
	hold     time.Duration // where no room has to move
	acts     []act         // in this order
	prepare  func(ctx context.Context, c *Chaos, trial int) error
	strike   func(ctx context.Context, c *Chaos, w *World) (heal, error) // instead of acts
	lasts    func(*Chaos) time.Duration                                  // least length of the fault; nil: as long as the rooms take to move
	cut      bool                                                        // --cut may lengthen it
	soak     bool                                                        // a soak draws it
	once     bool                                                        // one trial a run
	spreads  bool                                                        // the large room is on three nodes, and some of it speak
}

// hosts reports whether it hurts cables: each node must be a host of its own.
func (s scenario) hosts() bool {
	return slices.ContainsFunc(s.acts, func(a act) bool { return a.fault != nil })
}

const (
	// away is longer than longestPause, and than the 300 ms that a join waits for the store.
	away = 6 * time.Second
	// hurtFor is more than three times gossip's limit.
	hurtFor = 10 * time.Second
	// blockedFor outlasts gRPC's keepalive of 15 s, and the 30 s that a media node keeps people without a signaling node.
	blockedFor = 50 * time.Second
)

func scenarios() []scenario {
	return slices.Concat(ofProcesses(), ofOutages(), ofCables(), ofSpreadRooms(), []scenario{
		{
			name: Calm, sentence: "nobody is hurt, while the machine is busy and gossip is lossy",
			expect: Expect{Stays: true, Calm: true}, once: true, strike: hurtNobody,
		},
		{name: Soak, sentence: "random faults, one after the other"},
	})
}

func ofProcesses() []scenario {
	const kill, freeze = syscall.SIGKILL, syscall.SIGSTOP
	moves, noStore, store := Expect{Moves: true}, Expect{Store: true}, all(devcluster.RoleStore)
	return []scenario{
		{
			name: Kill, sentence: "a media node is killed with SIGKILL, and started again when its rooms have moved",
			expect: moves, soak: true, acts: []act{{what: "killed", whom: victims(1), signal: kill}},
		},
		{
			name: Freeze, sentence: "a media node is stopped with SIGSTOP until its rooms have moved, and then wakes up believing in them",
			expect: moves, soak: true, acts: []act{{what: "frozen", whom: victims(1), signal: freeze}},
		},
		{
			name: StoreKill, sentence: "the store is killed and comes back with nothing in it",
			expect: noStore, hold: away, soak: true, acts: []act{{what: "killed", whom: store, signal: kill}},
		},
		{
			name: StorePause, sentence: "the store answers nobody for some seconds",
			expect: noStore, hold: away, soak: true, acts: []act{{what: "frozen", whom: store, signal: freeze}},
		},
		{
			name: "edge-kill", sentence: "a signaling node is killed; its clients resume at another one",
			expect: noStore, hold: away, soak: true, acts: []act{{what: "killed", whom: anySignaling, signal: kill}},
		},
		{
			name: "two-of-three", sentence: "two media nodes are killed at the same time",
			expect: moves, soak: true, acts: []act{{what: "killed", whom: victims(2), signal: kill}},
		},
		{
			name: DoubleFault, sentence: "a media node is killed, and the signaling node that moves its rooms kills itself at a named step of that",
			expect: moves, soak: true, prepare: armSignaling, strike: killUnderArmedSignaling,
		},
		{
			name: Drain, sentence: "a media node drains: its rooms move while people talk; then it takes rooms again",
			expect: Expect{Moves: true, Smooth: true}, soak: true, strike: drainOne,
		},
		{
			name: DrainCrash, sentence: "a media node drains, and it, another media node or a signaling node dies at a random moment or a named step of that",
			expect: moves, soak: true, prepare: armEveryOther, strike: drainUnderFire,
		},
		{
			name: Rolling, sentence: "every node is replaced, one after the other: it drains, ends, and is started again",
			expect: Expect{Moves: true, Smooth: true, All: true}, strike: replaceAll,
		},
		{name: Crowd, sentence: "the media node with nearly all rooms is killed", expect: moves, once: true, prepare: awaitMeasured, strike: killCrowded},
	}
}

func ofCables() []scenario {
	stays, returns := Expect{Stays: true}, Expect{Moves: true, Returns: true}
	fromMedia := act{what: "cut off from the media nodes", whom: anySignaling, fault: fromAll(devcluster.RoleSFU)}
	nodes := all(devcluster.RoleSFU, devcluster.RoleSignaling)
	return []scenario{
		{
			name: Partition, sentence: "a media node is cut off from everybody until its rooms have moved",
			expect: returns, cut: true, soak: true, acts: []act{{what: "cut off", whom: victims(1), fault: fromAll()}},
		},
		{
			name: HalfPartition, sentence: "a media node is cut off from the other nodes and the store, while people still reach it, until its rooms have moved",
			expect: returns, cut: true, soak: true, acts: []act{{
				what: "cut off from the other nodes and the store", whom: victims(1),
				fault: fromAll(devcluster.RoleStore, devcluster.RoleSFU, devcluster.RoleSignaling),
			}},
		},
		{
			name: "edge-partition", sentence: "a signaling node is cut off from all media nodes, and from nobody else",
			expect: Expect{Store: true}, hold: away, cut: true, soak: true, acts: []act{fromMedia},
		},
		{
			name: "edge-partition-kill", sentence: "a signaling node is cut off from all media nodes, and from nobody else, and a media node is killed in that moment",
			expect: Expect{Moves: true}, soak: true, acts: []act{fromMedia, {what: "killed", whom: victims(1), signal: syscall.SIGKILL}},
		},
		{
			name: Loss, sentence: "some of a media node's packets are lost", expect: stays, hold: hurtFor, soak: true,
			acts: []act{{what: "lossy", whom: victims(1), fault: func(_ context.Context, c *Chaos, _ *World, _ string) hosts.Fault {
				return hosts.Fault{Percent: c.options.Percent}
			}}},
		},
		{
			name: Delay, sentence: "all of a media node's packets are late", expect: stays, hold: hurtFor, soak: true,
			acts: []act{{what: "slow", whom: victims(1), fault: func(_ context.Context, c *Chaos, _ *World, _ string) hosts.Fault {
				return hosts.Fault{Delay: c.options.Delay}
			}}},
		},
		{
			name: "udp-blocked", sentence: "no UDP passes between any two nodes, only TCP; people's media does",
			expect: stays, hold: hurtFor, soak: true, acts: []act{{what: "without UDP", whom: nodes, fault: func(ctx context.Context, c *Chaos, w *World, node string) hosts.Fault {
				f := fromAll(devcluster.RoleSFU, devcluster.RoleSignaling)(ctx, c, w, node)
				f.UDP = true
				return f
			}}},
		},
		{
			name: "control-blocked", sentence: "no signaling node reaches the control port of a media node, until its rooms have moved",
			expect: Expect{Moves: true, Smooth: true}, soak: true, acts: []act{blockControl(2)},
		},
		{
			name: ControlBlockedOne, sentence: "one signaling node does not reach the control port of a media node",
			expect: stays, hold: blockedFor, soak: true, acts: []act{blockControl(1)},
		},
	}
}

func find(name Name) (scenario, bool) {
	list := scenarios()
	i := slices.IndexFunc(list, func(s scenario) bool { return s.name == name })
	if i < 0 {
		return scenario{}, false
	}
	return list[i], true
}

func those(kind func(scenario) bool) []Name {
	var names []Name
	for _, s := range scenarios() {
		if kind(s) {
			names = append(names, s.name)
		}
	}
	return names
}

// Names lists the scenarios.
func Names() []string {
	var names []string
	for _, name := range those(func(scenario) bool { return true }) {
		names = append(names, string(name))
	}
	return names
}

// NeedsHosts reports whether a scenario hurts cables.
func NeedsHosts(name Name) bool {
	s, known := find(name)
	return known && s.hosts()
}

func (o Options) soakFaults() []Name {
	return those(func(s scenario) bool {
		return s.soak && o.can(s) && (len(o.Faults) == 0 || slices.Contains(o.Faults, s.name))
	})
}

// NeedsSentinels reports whether a scenario needs real Sentinels in front of the store.
func NeedsSentinels(name Name) bool { return name == SentinelFreeze }

// Containers take no variables that make them die at a step, and can be cut off from everybody only.
func (o Options) can(s scenario) bool {
	switch {
	case NeedsSentinels(s.name):
		return o.sentinels > 0
	case o.Cluster.Supervised():
		return o.Network != nil || !s.hosts()
	case s.hosts():
		return s.name == Partition
	default:
		return s.name != DoubleFault && s.name != DrainCrash && s.name != Calm && s.name != ClockAhead && s.name != ClockJump
	}
}
