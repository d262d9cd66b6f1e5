package cluster

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// sfuNode is an SFU node with a boot id that sorts by n.
func sfuNode(id string, n int) Node {
	return Node{
		ID: ring.NodeID(id), Boot: pin.BootID(fmt.Sprintf("%013d-00000000", n)), Role: RoleSFU,
		Control: "127.0.0.1:1", Media: "127.0.0.1:2",
	}
}

func observer() *members {
	return newMembers(Node{ID: "signaling", Boot: "0000000000001-eeeeeeee", Role: RoleSignaling}, quiet())
}

// told renders events for comparison: "kind node/boot number (why)".
func told(events []Event) []string {
	var out []string
	for _, e := range events {
		var n int
		fmt.Sscanf(string(e.Node.Boot), "%d-", &n)
		out = append(out, fmt.Sprintf("%s %s/%d (%s)", e.Kind, e.Node.ID, n, e.Why))
	}
	return out
}

// TestLives plays the ways a boot comes and goes and reads the events.
func TestLives(t *testing.T) {
	a1, a2 := sfuNode("a", 1), sfuNode("a", 2)
	moved := a1
	moved.Draining = true
	type step struct {
		do   func(m *members) []Event
		want []string
	}
	join := func(n Node) func(*members) []Event { return func(m *members) []Event { return m.join(n) } }
	update := func(n Node) func(*members) []Event { return func(m *members) []Event { return m.update(n) } }
	die := func(n Node) func(*members) []Event { return func(m *members) []Event { return m.die(n) } }
	proof := func(n Node) func(*members) []Event {
		return func(m *members) []Event { return m.reportDead(Node{ID: n.ID, Boot: n.Boot, Role: RoleSFU}, "proof") }
	}
	leave := func(n Node) func(*members) []Event {
		return func(m *members) []Event { e, _ := m.leave(n, 0); return e }
	}
	for name, steps := range map[string][]step{
		"death by gossip, once": {{join(a1), []string{"joined a/1 (gossip)"}}, {die(a1), []string{"dead a/1 (gossip)"}}, {die(a1), nil}, {proof(a1), nil}},
		"proof, then gossip":    {{join(a1), []string{"joined a/1 (gossip)"}}, {proof(a1), []string{"dead a/1 (proof)"}}, {update(moved), nil}, {die(a1), nil}, {proof(a1), nil}},
		"a frozen boot returns": {
			{join(a1), []string{"joined a/1 (gossip)"}},
			{die(a1), []string{"dead a/1 (gossip)"}},
			{update(a1), nil},
			{join(a1), []string{"joined a/1 (returned)"}},
			{die(a1), []string{"dead a/1 (gossip)"}},
		},
		"leave, then memberlist's word for it": {{join(a1), []string{"joined a/1 (gossip)"}}, {leave(a1), []string{"left a/1 (leave message)"}}, {die(a1), nil}, {proof(a1), nil}, {join(a1), nil}},
		"leave message too late":               {{join(a1), []string{"joined a/1 (gossip)"}}, {die(a1), []string{"dead a/1 (gossip)"}}, {leave(a1), nil}, {join(a1), nil}},
		"quick restart": {
			{join(a1), []string{"joined a/1 (gossip)"}},
			{join(a2), []string{"dead a/1 (newer boot)", "joined a/2 (gossip)"}},
			{die(a1), nil},
			{proof(a1), nil},
			{leave(a2), []string{"left a/2 (leave message)"}},
		},
		"two live boots, the newer first": {{join(a2), []string{"joined a/2 (gossip)"}}, {join(a1), nil}, {update(moved), nil}, {die(a1), nil}},
		"the older one joins anew after the newer died": {
			{join(a1), []string{"joined a/1 (gossip)"}},
			{join(a2), []string{"dead a/1 (newer boot)", "joined a/2 (gossip)"}},
			{die(a2), []string{"dead a/2 (gossip)"}},
			{join(a1), []string{"joined a/1 (returned)"}},
		},
		"proof of a boot that gossip never told of":  {{proof(a1), []string{"dead a/1 (proof)"}}, {proof(a1), nil}, {join(a2), []string{"joined a/2 (gossip)"}}},
		"an update of a member first not understood": {{update(a1), []string{"joined a/1 (gossip)"}}, {update(a1), nil}, {update(moved), nil}},
	} {
		m := observer()
		for i, s := range steps {
			if got := told(s.do(m)); !slices.Equal(got, s.want) {
				t.Errorf("%s, step %d: %q, want %q", name, i+1, got, s.want)
			}
		}
	}
}

// TestConfirmedDeaths: gossip alone only makes an SFU node Suspect where this process confirms deaths.
func TestConfirmedDeaths(t *testing.T) {
	m := observer()
	m.confirmDeaths = true
	a1, a2, signaling := sfuNode("a", 1), sfuNode("a", 2), Node{ID: "signaling-2", Boot: "0000000000001-00000000", Role: RoleSignaling}
	moved := a1
	moved.Draining = true
	step := func(got []Event, suspect, live bool, want ...string) {
		t.Helper()
		if texts := told(got); !slices.Equal(texts, want) {
			t.Errorf("%q, want %q", texts, want)
		}
		view := m.view()
		node, there := view.Nodes["a"]
		onRing := slices.Contains(view.Ring.Nodes(), "a")
		if there != live || node.Suspect != suspect || onRing != (live && !suspect && !node.Draining) {
			t.Errorf("live %t, suspect %t, on the ring %t; want live %t, suspect %t", there, node.Suspect, onRing, live, suspect)
		}
		if gone := view.Gone[a1.Boot]; live && node.Boot == a1.Boot && gone != "" {
			t.Errorf("it is live and %s", gone)
		}
	}
	step(m.join(a1), false, true, "joined a/1 (gossip)")
	step(m.die(a1), true, true)
	step(m.die(a1), true, true)
	step(m.update(moved), true, true)
	if !m.setLoad(a1, Load{Seq: 1}) {
		t.Error("a suspect node's load was ignored")
	}
	step(m.join(a1), false, true)
	step(m.die(a1), true, true)
	step(m.confirmDead(Node{ID: "a", Boot: a1.Boot, Role: RoleSFU}, "gossip: confirmed"), false, false, "dead a/1 (gossip: confirmed)")
	step(m.die(a1), false, false)
	step(m.join(a1), false, true, "joined a/1 (returned)")
	step(m.die(a1), true, true)
	step(m.join(a2), false, true, "dead a/1 (newer boot)", "joined a/2 (gossip)")
	step(m.die(a2), true, true)
	step(m.confirmDead(a2, "confirmed"), false, false, "dead a/2 (confirmed)")
	for range warnAt { // Gossip has declared both dead, so neither is waited for.
		step(m.remind(), false, false)
	}
	step(m.join(a2), false, true, "joined a/2 (returned)")
	left, _ := m.leave(a2, 0)
	step(left, false, false, "left a/2 (leave message)")
	m.join(signaling)
	step(m.die(signaling), false, false, "dead signaling-2/1 (gossip)")
}

func TestOwnNodeMakesNoEvents(t *testing.T) {
	m := observer()
	if events := slices.Concat(m.reportDead(m.self, "proof"), m.die(Node{ID: "other", Boot: m.self.Boot, Role: RoleSFU})); len(events) != 0 {
		t.Fatalf("events of our own: %q", told(events))
	}
	if events, news := m.leave(m.self, 0); len(events) != 0 || news {
		t.Fatal("a leave message about ourselves was believed")
	}
	if view := m.view(); len(view.Nodes) != 0 || len(view.Signaling) != 1 || len(view.Gone) != 0 {
		t.Fatalf("view is %+v", view)
	}
}

func TestRingIsOfPlaceableNodes(t *testing.T) {
	m := observer()
	a, b := sfuNode("a", 1), sfuNode("b", 1)
	m.join(a)
	m.join(b)
	first := m.view()
	if got := first.Ring.Nodes(); !slices.Equal(got, []ring.NodeID{"a", "b"}) {
		t.Fatalf("ring of %q, want a and b: signaling nodes take no rooms", got)
	}
	m.setLoad(a, Load{Seq: 3, Rooms: 1})
	if m.setLoad(a, Load{Seq: 3, Rooms: 2}) || m.setLoad(a, Load{Seq: 2, Rooms: 2}) {
		t.Fatal("an older load report was taken")
	}
	if view := m.view(); view.Ring != first.Ring || view.Nodes["a"].Load.Rooms != 1 {
		t.Fatalf("after a load report the ring is another (%v), load is %+v", view.Ring != first.Ring, view.Nodes["a"].Load)
	}
	b.Draining = true
	m.update(b)
	if view := m.view(); !slices.Equal(view.Ring.Nodes(), []ring.NodeID{"a"}) || !view.Nodes["b"].Draining {
		t.Fatalf("ring of %q while b drains", view.Ring.Nodes())
	}
	if !slices.Equal(first.Ring.Nodes(), []ring.NodeID{"a", "b"}) || first.Nodes["b"].Draining {
		t.Fatal("a published view changed")
	}
}

// TestTwoProcessesOfOneNameAreComplainedAbout tells a quick restart, which memberlist
// notices before the second reminder, from two processes that both live on.
func TestTwoProcessesOfOneNameAreComplainedAbout(t *testing.T) {
	var out bytes.Buffer
	m := newMembers(observer().self, slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelError})))
	m.join(sfuNode("restarted", 1))
	m.join(sfuNode("restarted", 2))
	m.join(sfuNode("double", 4))
	m.join(sfuNode("double", 3))
	m.remind()
	m.die(sfuNode("restarted", 1))
	m.remind()
	if got := out.String(); strings.Count(got, "level=ERROR") != 1 || !strings.Contains(got, string(sfuNode("", 3).Boot)) {
		t.Fatalf("logged:\n%s", got)
	}
}

func TestGoneIsBounded(t *testing.T) {
	m := observer()
	for n := range maxGone + 10 {
		m.reportDead(sfuNode("a", n+1), "proof")
	}
	view := m.view()
	if len(view.Gone) != maxGone || view.Gone[sfuNode("a", 10).Boot] != "" || view.Gone[sfuNode("a", 11).Boot] != DepartureDead {
		t.Fatalf("%d departures remembered, want %d, the oldest forgotten", len(view.Gone), maxGone)
	}
}

// TestUnreachableNodesAreOffTheRing: who is not heard gets no new rooms, as long as there is somebody who is.
func TestUnreachableNodesAreOffTheRing(t *testing.T) {
	m := observer()
	a, b, draining := sfuNode("a", 1), sfuNode("b", 1), sfuNode("c", 1)
	draining.Draining = true
	for _, node := range []Node{a, b, draining} {
		node.Boot += pin.BootID(node.ID) // Boots of two nodes are never equal.
		m.join(node)
	}
	for _, step := range []struct{ unreachable, onRing []string }{
		{nil, []string{"a", "b"}},
		{[]string{"a"}, []string{"b"}},
		{[]string{"a", "b"}, []string{"a", "b"}}, // Nobody else takes rooms.
		{[]string{"b"}, []string{"a"}},
		{[]string{"a", "b", "c"}, []string{"a", "b"}},
		{[]string{"nobody"}, []string{"a", "b"}},
	} {
		before, boots := m.view(), []pin.BootID{}
		nodes := maps.Clone(before.Nodes)
		for _, name := range step.unreachable {
			boots = append(boots, sfuNode(name, 1).Boot+pin.BootID(name))
		}
		m.setUnreachable(boots)
		view := m.view()
		var onRing []string
		for _, id := range view.Ring.Nodes() {
			onRing = append(onRing, string(id))
		}
		if slices.Sort(onRing); !slices.Equal(onRing, step.onRing) {
			t.Errorf("%q are unreachable: the ring has %q, want %q", step.unreachable, onRing, step.onRing)
		}
		for id, node := range view.Nodes {
			if node.Unreachable != slices.Contains(step.unreachable, string(id)) {
				t.Errorf("%q are unreachable: %s is shown as unreachable %t", step.unreachable, id, node.Unreachable)
			}
		}
		if !maps.Equal(before.Nodes, nodes) {
			t.Error("a view changed after it was published")
		}
	}
	moved := a
	moved.Boot += "a"
	moved.HTTP = "127.0.0.1:9"
	m.setUnreachable([]pin.BootID{moved.Boot})
	m.update(moved)
	if node := m.view().Nodes["a"]; !node.Unreachable || node.HTTP != moved.HTTP {
		t.Errorf("after news of it the unreachable node is %+v", node)
	}
}

// TestMembersInvariants plays random histories: no boot is both live and gone, events of
// a boot alternate, a boot that left stays gone, only boots that memberlist believes alive join, and published views
// never change.
func TestMembersInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := observer()
		m.confirmDeaths = rapid.Bool().Draw(t, "confirmDeaths")
		state := map[pin.BootID]EventKind{}
		believed := map[pin.BootID]bool{} // alive, by memberlist
		type snapshot struct {
			view  *View
			nodes map[ring.NodeID]Node
			gone  map[pin.BootID]Departure
		}
		var published []snapshot
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			node := sfuNode(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node"), rapid.IntRange(1, 3).Draw(t, "boot"))
			node.Boot = pin.BootID(string(node.Boot) + string(node.ID)) // Boots of two nodes are never equal.
			node.Draining = rapid.Bool().Draw(t, "draining")
			var events []Event
			switch rapid.IntRange(0, 7).Draw(t, "what") {
			case 0, 1:
				believed[node.Boot] = true
				events = m.join(node)
			case 2:
				believed[node.Boot] = true
				events = m.update(node)
			case 3:
				believed[node.Boot] = false
				events = m.die(node)
			case 4:
				events, _ = m.leave(node, 0)
			case 5:
				events = m.reportDead(node, "proof")
			case 6:
				events = m.remind()
			case 7:
				m.heardDead(node, time.Minute)
			}
			for _, e := range events {
				before := state[e.Node.Boot]
				wasLive := before == EventJoined
				switch e.Kind {
				case EventJoined:
					if wasLive || before == EventLeft || !believed[e.Node.Boot] {
						t.Fatalf("%s joined after %q; memberlist believes it alive: %t", e.Node.Boot, before, believed[e.Node.Boot])
					}
				case EventLeft, EventDead:
					if !wasLive && before != "" {
						t.Fatalf("%s %s after %q", e.Node.Boot, e.Kind, before)
					}
				}
				state[e.Node.Boot] = e.Kind
			}
			view := m.view()
			for id, live := range view.Nodes {
				if live.Suspect && !m.confirmDeaths {
					t.Fatalf("%s/%s is suspect without confirmDeaths", id, live.Boot)
				}
				if live.ID != id || view.Gone[live.Boot] != "" {
					t.Fatalf("%s/%s is live and gone", id, live.Boot)
				}
			}
			if len(m.departed) != len(view.Gone) {
				t.Fatalf("%d departures in order, %d in the view", len(m.departed), len(view.Gone))
			}
			published = append(published, snapshot{view, maps.Clone(view.Nodes), maps.Clone(view.Gone)})
		}
		for _, s := range published {
			if !maps.Equal(s.view.Nodes, s.nodes) || !maps.Equal(s.view.Gone, s.gone) {
				t.Fatalf("view %d changed after it was published", s.view.Version)
			}
		}
	})
}

// TestHowGone: a view says by what evidence a boot is gone, as far as this member knows it.
func TestHowGone(t *testing.T) {
	m := observer()
	m.confirmDeaths = true
	proven, confirmed, left, heard := sfuNode("a", 1), sfuNode("b", 2), sfuNode("c", 3), sfuNode("d", 4)
	for _, node := range []Node{proven, confirmed, left} {
		m.join(node)
	}
	m.reportDead(proven, "proof: stream broken")
	m.die(confirmed)
	m.confirmDead(confirmed, "gossip, no heartbeat for 1s")
	m.leave(left, 0)
	m.heardDead(heard, time.Second)
	view := m.view()
	for boot, want := range map[pin.BootID]string{
		proven.Boot:    "dead (proof: stream broken)",
		confirmed.Boot: "dead (gossip, no heartbeat for 1s)",
		left.Boot:      "left (leave message)",
		heard.Boot:     "dead (another member's word)",
		"unknown":      "",
	} {
		if got := view.HowGone(boot); got != want {
			t.Errorf("boot %s: %q, want %q", boot, got, want)
		}
	}
}
