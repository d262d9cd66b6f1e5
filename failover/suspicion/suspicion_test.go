package suspicion

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/ring"
)

const ms = time.Millisecond

// hall is a room of n1 whose people go on at n2.
func hall(ring.NodeID) []Room { return []Room{{"hall", "n2", 2}} }

func TestWhoIsSuspected(t *testing.T) {
	silent := Node{"n1", 310 * ms, 130 * ms}
	heard := func(id ring.NodeID) Node { return Node{id, 90 * ms, 0} }
	for name, c := range map[string]struct {
		onTime time.Duration
		nodes  []Node
		rooms  func(ring.NodeID) []Room
		want   bool
	}{
		"it alone is silent":                        {time.Hour, []Node{silent, heard("n2"), heard("n3")}, hall, true},
		"it was heard lately":                       {time.Hour, []Node{{"n1", 290 * ms, 130 * ms}, heard("n2")}, hall, false},
		"it was not asked":                          {time.Hour, []Node{{"n1", 310 * ms, 0}, heard("n2")}, hall, false},
		"it has not had the time to answer":         {time.Hour, []Node{{"n1", 310 * ms, 110 * ms}, heard("n2")}, hall, false},
		"the observer was paused":                   {250 * ms, []Node{silent, heard("n2")}, hall, false},
		"another node fell silent at the same time": {time.Hour, []Node{silent, heard("n2"), {"n3", 160 * ms, 0}}, hall, false},
		"another node has long been silent":         {time.Hour, []Node{silent, heard("n2"), {"n3", 2 * time.Second, time.Second}}, hall, true},
		"both are silent":                           {time.Hour, []Node{silent, {"n2", 320 * ms, 140 * ms}}, hall, false},
		"the standby has long been silent":          {time.Hour, []Node{silent, {"n2", 2 * time.Second, time.Second}}, hall, false},
		"the standby is not known":                  {time.Hour, []Node{silent, heard("n3")}, hall, false},
		"nobody stands by":                          {time.Hour, []Node{silent, heard("n2")}, func(ring.NodeID) []Room { return []Room{{"hall", "", 2}} }, false},
		"it has no rooms":                           {time.Hour, []Node{silent, heard("n2")}, func(ring.NodeID) []Room { return nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			node, moves := New(DefaultConfig()).Next(time.Hour, c.onTime, c.nodes, c.rooms)
			if got := len(moves) > 0; got != c.want || got && (node != silent || moves[0] != Move{"hall", "n2"}) {
				t.Errorf("%v is suspected, and %v move", node, moves)
			}
		})
	}
}

// TestBounds plays any silences: a suspicion moves few rooms, each to a node that is heard, and no more suspicions come in any window than are allowed.
func TestBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := DefaultConfig()
		cfg.Rooms = 3
		s, now := New(cfg), time.Duration(0)
		var at []time.Duration
		last := map[ring.NodeID]time.Duration{}
		for range rapid.IntRange(1, 200).Draw(t, "looks") {
			now += time.Duration(rapid.IntRange(1, 30_000).Draw(t, "ms")) * ms
			var nodes []Node
			for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
				silence := rapid.SampledFrom([]time.Duration{0, 100 * ms, 160 * ms, 310 * ms, 3 * time.Second}).Draw(t, "silence")
				nodes = append(nodes, Node{ring.NodeID(fmt.Sprint("n", i)), silence, max(0, silence-cfg.Late)})
			}
			rooms := func(of ring.NodeID) (all []Room) {
				for i := range rapid.IntRange(0, 6).Draw(t, "rooms") {
					all = append(all, Room{ring.RoomID(fmt.Sprint(i)), ring.NodeID(fmt.Sprint("n", rapid.IntRange(0, 5).Draw(t, "standby"))), i})
				}
				return all
			}
			node, moves := s.Next(now, time.Hour, nodes, rooms)
			if len(moves) == 0 {
				continue
			}
			if before, again := last[node.ID]; again && now-before < cfg.Window {
				t.Fatalf("%s is suspected after %s again", node.ID, now-before)
			}
			last[node.ID], at = now, append(at, now)
			if n := len(at) - cfg.Most - 1; n >= 0 && now-at[n] < cfg.Window {
				t.Fatalf("%d suspicions in %s", cfg.Most+1, now-at[n])
			}
			if len(moves) > cfg.Rooms {
				t.Fatalf("%d rooms move", len(moves))
			}
			for _, m := range moves {
				if !slices.ContainsFunc(nodes, func(n Node) bool { return n.ID == m.To && n.Silence < cfg.Late }) {
					t.Fatalf("a room moves to %s, which is not heard: %v", m.To, nodes)
				}
			}
		}
	})
}

// TestWhoCameBackFirst: when an observer was cut off, one node is heard again before the others. These are not suspected.
func TestWhoCameBackFirst(t *testing.T) {
	s := New(DefaultConfig())
	silent := func(n1, n2 time.Duration) []Node { return []Node{{"n1", n1, n1}, {"n2", n2, n2}} }
	for i, nodes := range [][]Node{silent(200*ms, 200*ms), silent(310*ms, 0), silent(360*ms, 90*ms)} {
		if _, moves := s.Next(10*time.Second+time.Duration(i)*50*ms, time.Hour, nodes, hall); len(moves) > 0 {
			t.Fatalf("look %d: %v move", i, moves)
		}
	}
	s.Next(11*time.Second, time.Hour, silent(0, 0), hall)
	if _, moves := s.Next(12*time.Second, time.Hour, silent(310*ms, 0), hall); len(moves) == 0 {
		t.Error("it was heard again, and now it alone is silent, and nothing moves")
	}
}

// A node whose heartbeats are late now and then is waited for, until that was a while ago. A long pause is no lateness.
func TestANodeThatIsOftenLateHasTime(t *testing.T) {
	s, now := New(DefaultConfig()), time.Hour
	hall := func(ring.NodeID) []Room { return []Room{{"hall", "n2", 3}} }
	silent := func(after, silence time.Duration) bool {
		now += after
		_, moves := s.Next(now, time.Hour, []Node{{"n1", silence, 150 * ms}, {"n2", 50 * ms, 0}}, hall)
		return len(moves) > 0
	}
	silent(0, 260*ms)
	silent(10*ms, 20*ms)
	if silent(time.Second, 380*ms) {
		t.Error("a node that was late by 260 ms is suspected after 380")
	}
	silent(10*ms, 20*ms)
	if silent(30*time.Second, 560*ms) {
		t.Error("a node that was late by 380 ms is suspected after 560")
	}
	if !silent(20*ms, 580*ms) {
		t.Error("nor is it after 580")
	}
	// It comes back, and keeps time from then on.
	silent(3*time.Second, 10*ms)
	for range 125 {
		silent(time.Second, 90*ms)
	}
	if silent(time.Second, 290*ms) || !silent(20*ms, 310*ms) {
		t.Error("two minutes later it is not suspected after 310 ms")
	}
	silent(3*time.Second, 10*ms)
	now += 2 * time.Minute
	s.Next(now, time.Hour, []Node{{"n1", 700 * ms, 0}, {"n2", 50 * ms, 0}}, hall)
	silent(10*ms, 10*ms)
	if silent(time.Second, 290*ms) || !silent(time.Second, 400*ms) {
		t.Error("a long pause counts as lateness")
	}
}

func TestTheLargestRoomsGoFirst(t *testing.T) {
	cfg := DefaultConfig()
	cfg.Rooms = 2
	rooms := func(ring.NodeID) []Room { return []Room{{"b", "n2", 1}, {"c", "n2", 9}, {"a", "n2", 1}} }
	_, moves := New(cfg).Next(time.Hour, time.Hour, []Node{{"n1", time.Second, time.Second}, {"n2", 0, 0}}, rooms)
	if want := []Move{{"c", "n2"}, {"a", "n2"}}; !slices.Equal(moves, want) {
		t.Errorf("%v move, want %v", moves, want)
	}
}
