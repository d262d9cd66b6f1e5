package failover

import (
	"testing"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/events"
)

// The returned boot is tested with a process that is frozen for real in lab/devcluster.
func TestWhatTheEventsSayOfNodes(t *testing.T) {
	node := cluster.Node{ID: "sfu-1", Boot: "7", Role: cluster.RoleSFU, Version: "0.1.0"}
	for kind, want := range map[cluster.EventKind]events.Event{
		cluster.EventJoined: {Kind: events.NodeUp},
		cluster.EventDead:   {Kind: events.NodeDown, Cause: "silent"},
		cluster.EventLeft:   {Kind: events.NodeLeft},
	} {
		want.Node, want.Role, want.About, want.Version = "sfu-1", "sfu", "7", "0.1.0"
		if got, known := factOf(cluster.Event{Kind: kind, Node: node, Why: "silent"}); !known || got != want {
			t.Errorf("%s: %+v, known %t, want %+v", kind, got, known, want)
		}
	}
	if got, known := factOf(cluster.Event{Kind: "later", Node: node}); known {
		t.Errorf("a change that this build does not know: %+v", got)
	}
}
