package orchestrator

import (
	"testing"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// TestARoomMovesToItsBranch: a room whose owner died goes to the branch with the most people that takes rooms, whatever the ring says; and
// one without branches as the ring says.
func TestARoomMovesToItsBranch(t *testing.T) {
	view := viewOf(sfu("a", 1), sfu("b", 1), sfu("c", 1))
	ringSays := func(cfg Config) ring.NodeID {
		store := testkit.NewMemoryStore()
		old := pinAt("dead", 1, 5000, 1)
		store.Put("r", old.Encode())
		placer := New(store, fixed(view), &addresses{}, cfg, quiet)
		placer.Plan("r", old, headroom.Room{})
		p, err := placer.Rehome(t.Context(), "r", old, headroom.Room{})
		if err != nil {
			t.Fatal(err)
		}
		return p.Node
	}
	owner := ringSays(DefaultConfig())
	for node := range view.Nodes {
		cfg := DefaultConfig()
		cfg.Branches = func(ring.RoomID) []pin.BootID {
			return []pin.BootID{"1-of-a-dead-process", view.Nodes[node].Boot, view.Nodes[owner].Boot}
		}
		if got := ringSays(cfg); got != node {
			t.Errorf("a room with people at %s moves to %s", node, got)
		}
	}
	draining := sfu("b", 1)
	draining.Draining = true
	view = viewOf(sfu("a", 1), draining, sfu("c", 1))
	cfg := DefaultConfig()
	cfg.Branches = func(ring.RoomID) []pin.BootID { return []pin.BootID{draining.Boot} }
	if got := ringSays(cfg); got == draining.ID {
		t.Errorf("a room moves to %q, a draining branch", got)
	}
}
