package node

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/ring"
)

// TestWhoLeavesBecauseNobodyReachesIt plays ten and more seconds of one view, and says who of a, b and c leaves.
func TestWhoLeavesBecauseNobodyReachesIt(t *testing.T) {
	type load = cluster.Load
	signaling := map[ring.NodeID]cluster.Node{"signaling-1": {}}
	for name, c := range map[string]struct {
		loads     [3]load // of a, b, c
		signaling map[ring.NodeID]cluster.Node
		want      string
	}{
		"all are watched":                       {[3]load{{Rooms: 1, Watchers: 2}, {Rooms: 1, Watchers: 1}, {Watchers: 2}}, signaling, ""},
		"one is not":                            {[3]load{{Rooms: 1, Watchers: 2}, {Rooms: 1}, {Watchers: 1}}, signaling, "b"},
		"it has no rooms":                       {[3]load{{Rooms: 1, Watchers: 2}, {}, {Watchers: 1}}, signaling, ""},
		"two are not: one at a time":            {[3]load{{Rooms: 1}, {Rooms: 1}, {Watchers: 1}}, signaling, "a"},
		"the lower one has no rooms":            {[3]load{{}, {Rooms: 1}, {Watchers: 1}}, signaling, "b"},
		"none is: the signaling nodes are ill":  {[3]load{{Rooms: 1}, {Rooms: 1}, {Rooms: 1}}, signaling, ""},
		"there is no signaling node to be seen": {[3]load{{Rooms: 1, Watchers: 2}, {Rooms: 1}, {Rooms: 1, Watchers: 1}}, nil, ""},
	} {
		view := &cluster.View{Nodes: map[ring.NodeID]cluster.Node{}, Signaling: c.signaling}
		for i, id := range []ring.NodeID{"a", "b", "c"} {
			view.Nodes[id] = cluster.Node{ID: id, Role: cluster.RoleSFU, Load: c.loads[i]}
		}
		left := ""
		for _, id := range []ring.NodeID{"a", "b", "c"} {
			u, now := &unwatched{self: id}, time.Unix(1_000_000, 0)
			for tick := range 30 {
				if u.leaves(view, now.Add(time.Duration(tick)*reportEvery)) {
					left += string(id)
					if time.Duration(tick)*reportEvery < unwatchedFor {
						t.Errorf("%s: %s leaves after %d looks", name, id, tick)
					}
				}
			}
		}
		if left != c.want {
			t.Errorf("%s: %q leaves, want %q", name, left, c.want)
		}
	}
}

// TestWhoWasNextIsCountedAnew: a look at which somebody watches, or another is to leave first, begins the ten seconds again.
func TestWhoWasNextIsCountedAnew(t *testing.T) {
	view := func(a, b uint32) *cluster.View {
		return &cluster.View{Signaling: map[ring.NodeID]cluster.Node{"signaling-1": {}}, Nodes: map[ring.NodeID]cluster.Node{
			"a": {Load: cluster.Load{Rooms: 1, Watchers: a}}, "b": {Load: cluster.Load{Rooms: 1, Watchers: b}}, "c": {Load: cluster.Load{Watchers: 1}},
		}}
	}
	u, now := &unwatched{self: "b"}, time.Unix(1_000_000, 0)
	for _, look := range []struct {
		view *cluster.View
		at   time.Duration
		want bool
	}{
		{view(1, 0), 0, false},
		{view(1, 0), 9 * time.Second, false},
		{view(0, 0), 10 * time.Second, false}, // a is to leave first
		{view(1, 0), 11 * time.Second, false},
		{view(1, 0), 20 * time.Second, false},
		{view(1, 1), 21 * time.Second, false},
		{view(1, 0), 22 * time.Second, false},
		{view(1, 0), 32 * time.Second, true},
		{view(1, 0), 33 * time.Second, false},
	} {
		if got := u.leaves(look.view, now.Add(look.at)); got != look.want {
			t.Errorf("after %v: leaves %t", look.at, got)
		}
	}
}

func TestMediaGoesOnAfterANodeLeftByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, u := time.Now(), &unwatched{}
		if err := u.linger(t.Context()); err != nil || time.Since(began) != 0 {
			t.Errorf("a node that was told to leave lingers for %v: %v", time.Since(began), err)
		}
		u.left.Store(true)
		if err := u.linger(t.Context()); !errors.Is(err, errUnwatched) || time.Since(began) != lingerFor {
			t.Errorf("a node that left by itself lingers for %v: %v", time.Since(began), err)
		}
	})
}
