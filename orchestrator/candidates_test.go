package orchestrator

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/spread"
)

func TestCandidates(t *testing.T) {
	node := func(id ring.NodeID) cluster.Node {
		return cluster.Node{ID: id, Boot: "boot", Control: "control", Capabilities: control.CapabilityBranch, Load: cluster.Load{
			EgressBitsPerSecond: 3, EgressPacketsPerSecond: 2, CeilingBitsPerSecond: 30, CeilingPacketsPerSecond: 20,
		}}
	}
	old, draining, suspect, unreported := node("b"), node("c"), node("a"), node("d")
	old.Capabilities, draining.Draining, suspect.Suspect, unreported.Load = "", true, true, cluster.Load{}
	view := &cluster.View{Nodes: map[ring.NodeID]cluster.Node{}, Ring: ring.New([]ring.NodeID{"b", "d", "e"})}
	for _, n := range []cluster.Node{old, draining, suspect, unreported, node("e")} {
		view.Nodes[n.ID] = n
	}
	want := slices.Concat(slices.Collect(view.Ring.Successors("room")), []ring.NodeID{"a", "c"})
	got := Candidates(view, "room")
	var order []ring.NodeID
	of := map[ring.NodeID]spread.Candidate{}
	for _, c := range got {
		order, of[c.Node] = append(order, c.Node), c
	}
	if !slices.Equal(order, want) {
		t.Errorf("the order is %v, want %v", order, want)
	}
	e := spread.Candidate{
		Node: "e", Boot: "boot", Control: "control", Able: true,
		Load: headroom.Egress{BitsPerSecond: 3, PacketsPerSecond: 2}, Ceiling: headroom.Egress{BitsPerSecond: 30, PacketsPerSecond: 20},
	}
	if of["e"] != e {
		t.Errorf("%+v, want %+v", of["e"], e)
	}
	if of["b"].Able || !of["c"].Draining || !of["a"].Suspect || of["d"].Ceiling.PacketsPerSecond != assumedPacketsPerSecond {
		t.Errorf("%+v", got)
	}
}

// A room that no node could take whole is placed as half of one where two nodes can divide it.
func TestALargeNewRoomIsPlacedAsHalfANode(t *testing.T) {
	node := func(id ring.NodeID) cluster.Node {
		return cluster.Node{ID: id, Boot: "boot-" + pin.BootID(id), Control: string(id), Capabilities: control.CapabilityBranch, Load: cluster.Load{
			Seq: 1, EgressBitsPerSecond: 300e6, EgressPacketsPerSecond: 30_000, CeilingBitsPerSecond: 800e6, CeilingPacketsPerSecond: 100_000,
		}}
	}
	large, half := headroom.Expect(900), headroom.Egress{BitsPerSecond: 800e6, PacketsPerSecond: 100_000}.Part(0.501)
	draining, old, ran := node("b"), node("b"), large
	draining.Draining, old.Capabilities, ran.Running = true, "", true
	for name, c := range map[string]struct {
		other  cluster.Node
		expect headroom.Room
		halved bool
	}{
		"two can":                 {node("b"), large, true},
		"the other one drains":    {draining, large, false},
		"the other one is older":  {old, large, false},
		"its people come at once": {node("b"), ran, false},
		"a small room":            {node("b"), headroom.Expect(9), false},
	} {
		view := &cluster.View{
			Nodes: map[ring.NodeID]cluster.Node{"a": node("a"), "b": c.other}, Ring: ring.New([]ring.NodeID{"a", "b"}), Settled: true,
			Signaling: map[ring.NodeID]cluster.Node{},
		}
		need := needOf(view, c.expect)
		if halved := need != c.expect.Cost(); halved != c.halved || halved && !need.Fits(half) {
			t.Errorf("%s: it needs %v of %v", name, need, c.expect.Cost())
		}
		l := &ledger{clock: time.Now}
		if at, _ := l.reserve(view, "room", c.expect, avoidance{}, pin.Fence{Epoch: 1}, false); (at.ID != "") != (c.halved || c.expect.People == 9) {
			t.Errorf("%s: placed on %q", name, at.ID)
		}
	}
}

// TestARoomMovesToItsStandby: a room whose owner dies or drains goes to the node that its owner appointed, also above the bound, but not to one
// without headroom.
func TestARoomMovesToItsStandby(t *testing.T) {
	expect := headroom.Expect(4)
	node := func(id string, load uint64) cluster.Node {
		n := sfu(id, 1)
		n.Capabilities, n.Load.EgressBitsPerSecond = control.CapabilityStandby, load
		return n
	}
	// The first on the ring is the owner, the second cannot, and the third is above the bound.
	order := slices.Collect(viewOf(sfu("a", 1), sfu("b", 1), sfu("c", 1), sfu("d", 1)).Ring.Successors("room"))
	owner, unable, third, fourth := order[0], order[1], order[2], order[3]
	for _, c := range []struct {
		name   string
		load   uint64 // of the third node
		before ring.NodeID
		want   ring.NodeID
	}{
		{"above the bound", 500e6, "", third},
		{"full", 999e6, "", fourth},
		{"another one stood by before", 500e6, fourth, fourth},
		{"one that is full stood by before", 999e6, third, fourth},
	} {
		view := viewOf(node(string(owner), 0), sfu(string(unable), 1), node(string(third), c.load), node(string(fourth), 0))
		if got, ok := Standby(view, "room", owner, c.before, expect.Cost(), nil); !ok || got.ID != c.want {
			t.Errorf("%s: %q stands by, want %q", c.name, got.ID, c.want)
		}
		told := view.Nodes[c.before].Boot
		for _, avoid := range []avoidance{{node: owner, from: owner, standby: told}, {boot: "its-former-process", from: owner, standby: told}} {
			l := &ledger{clock: time.Now}
			if got, _ := l.reserve(view, "room", expect, avoid, pin.Fence{Epoch: 2}, true); got.ID != c.want {
				t.Errorf("%s: the room moves to %q, want %q", c.name, got.ID, c.want)
			}
		}
	}
	promised := map[ring.NodeID]headroom.Egress{third: {BitsPerSecond: 909e6}}
	view := viewOf(node(string(owner), 0), node(string(third), 90e6), node(string(fourth), 0))
	if got, _ := Standby(view, "room", owner, third, expect.Cost(), promised); got.ID != fourth {
		t.Errorf("%q stands by, and what it has promised to other rooms leaves no headroom", got.ID)
	}
	if got, ok := Standby(viewOf(node("a", 0)), "room", "a", "", expect.Cost(), nil); ok {
		t.Errorf("%q stands by for itself", got.ID)
	}
}
