//go:build long && linux

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestAHotNodeIsRelieved fills the only media node to more than 85 % of its ceiling, adds another one like it, and prints which rooms went
// over and how long streams were not there. Only with the tag long: signaling nodes wait for their turn.
func TestAHotNodeIsRelieved(t *testing.T) {
	t.Parallel()
	takes(t, 4)
	const each, mostRooms, ceiling = 3, 40, "HOLDFAST_EGRESS_BITS=54000000"
	c := startCluster(t, devcluster.Options{SFU: 1, Signaling: 2, NodeEnv: map[string][]string{"sfu-1": {ceiling}}})
	var calls []*people
	for shareOf(t, c, "sfu-1") < 0.88 {
		if len(calls) == mostRooms {
			t.Fatalf("%d rooms are %.2f of the ceiling", len(calls), shareOf(t, c, "sfu-1"))
		}
		stack, err := peer.NewStack(peer.VideoSimulcast) // 30 frames/s
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, gatherAs(t, c, fmt.Sprintf("warm-%d", len(calls)), each, peer.Options{Stack: stack}))
		allReceive(t, time.Minute, calls)
		<-time.After(3 * time.Second) // until the load reports have it
	}
	t.Logf("%d rooms of %d people: sfu-1 is at %.2f of its ceiling", len(calls), each, shareOf(t, c, "sfu-1"))
	before := allOnce(t, c, calls)
	longestGaps(calls)
	<-time.After(30 * time.Second)
	t.Logf("still: sound %s, pictures %s", spread(gapsOf(calls, wire.SourceMicrophone)), spread(gapsOf(calls, wire.SourceCamera)))
	longestGaps(calls)
	began := time.Now()
	if _, err := c.AddSFU(t.Context(), ceiling); err != nil {
		t.Fatal(err)
	}
	// A turn lasts a minute, and hot is who was hot for ten seconds.
	eventually(t, 4*time.Minute, "the hot node cools", func() error {
		if at := shareOf(t, c, "sfu-1"); at > 0.78 {
			return fmt.Errorf("it is at %.2f", at)
		}
		return nil
	})
	t.Logf("after %v sfu-1 is at %.2f of its ceiling, sfu-2 at %.2f", time.Since(began).Round(time.Second), shareOf(t, c, "sfu-1"), shareOf(t, c, "sfu-2"))
	<-time.After(time.Minute) // Who is next in turn has nothing to do.
	allReceive(t, time.Minute, calls)
	after := allOnce(t, c, calls)
	var moved, stayed []*people
	for _, g := range calls {
		if after[g.room].Epoch == before[g.room].Epoch {
			stayed = append(stayed, g)
			continue
		}
		moved = append(moved, g)
		said, code := holdfast(t, c, "explain", g.room)
		if code != 0 || !strings.Contains(said, "sfu-1 -> sfu-2: relief: it ") || after[g.room].Epoch != before[g.room].Epoch+1 {
			t.Errorf("explain: exit code %d\n%s", code, said)
		}
	}
	if len(moved) == 0 || len(moved) > len(calls)/2 {
		t.Fatalf("%d of %d rooms have moved", len(moved), len(calls))
	}
	for name, of := range map[string][]*people{"stayed": stayed, "moved": moved} {
		t.Logf("%d rooms %s: longest gaps of sound %s, of pictures %s", len(of), name, spread(gapsOf(of, wire.SourceMicrophone)), spread(gapsOf(of, wire.SourceCamera)))
	}
}

// shareOf is a media node's load by its report, as a part of its ceiling in bits.
func shareOf(t *testing.T, c *devcluster.Cluster, node string) float64 {
	t.Helper()
	nodes, err := c.AdminNodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if n.Node == node {
			return float64(n.EgressBitsPerSecond) / float64(max(n.CeilingBitsPerSecond, 1)) // it may not have reported yet
		}
	}
	return 0
}
