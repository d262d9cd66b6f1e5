package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
)

// TestTraces has people join at two signaling nodes, kills their media node, and asks the collector: each join is one
// tree of a signaling node and a media node, and the death is one tree of both signaling nodes and the new media node,
// down to everybody's gap.
func TestTraces(t *testing.T) {
	t.Parallel()
	collector := testkit.NewCollector(t)
	options := devcluster.Options{SFU: 2, NodeEnv: map[string][]string{}}
	for _, node := range []string{"signaling-1", "signaling-2", "sfu-1", "sfu-2"} {
		options.NodeEnv[node] = []string{"HOLDFAST_TRACES_URL=" + collector.URL}
	}
	c := startCluster(t, options)
	const room, people = "hall", 4
	joinAtBoth(t, c, room, people)
	eventually(t, time.Minute, "a tree for each join", func() error { return joinTrees(collector.Spans(), people) })
	kill(t, c, heldOnce(t, c, room).Node)
	eventually(t, time.Minute, "everybody's way back", func() error {
		if back := count(collector.Spans(), "client"); back != people {
			return fmt.Errorf("%d of %d clients are back", back, people)
		}
		return nil
	})
	// A signaling node that leaves sends what it has.
	for _, node := range []string{"signaling-1", "signaling-2"} {
		if err := c.Replace(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	spans := collector.Spans()
	tree := deathTree(t, spans)
	for _, line := range []string{
		"\n  signaling-1: failover\n", "\n  signaling-2: failover\n", ": evidence\n", ": re-home room\n", ": swap pin\n", ": walk ring\n",
		": client\n", ": attach\n", ": attach at media node\n", ": confirm pin\n", ": answer offer\n", ": ICE\n", ": DTLS\n", ": first packet\n",
	} {
		if !strings.Contains(tree, line) {
			t.Errorf("no line %q in the tree of the death", line)
		}
	}
	if clients := strings.Count(tree, ": client\n"); clients != people || strings.Contains(tree, "parent has not come") {
		t.Errorf("%d clients in the tree of the death, want %d", clients, people)
	}
	if t.Failed() || testing.Verbose() {
		t.Logf("the death:\n%s", tree)
	}
	namesNobody(t, spans)
}

// joinAtBoth has people join a room at both signaling nodes in turn.
func joinAtBoth(t *testing.T, c *devcluster.Cluster, room string, people int) {
	t.Helper()
	stack, err := peer.NewStack(peer.VideoLight)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var living sync.WaitGroup
	t.Cleanup(func() { cancel(); living.Wait() })
	for i := range people {
		at, err := c.Node(t.Context(), fmt.Sprintf("signaling-%d", i%2+1))
		if err != nil {
			t.Fatal(err)
		}
		token, err := c.Token(room, "secret-identity")
		if err != nil {
			t.Fatal(err)
		}
		p, err := peer.New(peer.Options{URL: "http://" + at.Addresses[child.AddressHTTP], Room: room, Token: token, Stack: stack}, quiet())
		if err != nil {
			t.Fatal(err)
		}
		living.Go(func() { _ = p.Run(ctx) })
	}
}

// joinTrees returns an error unless each join is a whole tree that leads from a signaling node to the room's media node.
func joinTrees(spans []testkit.TracedSpan, people int) error {
	whole := 0
	var faults error
	for _, root := range spans {
		if root.Name != "join" {
			continue
		}
		tree, node := testkit.Tree(spans, root.Trace), root.Attributes["holdfast.node"]
		for _, line := range []string{"attach at media node", "answer offer", "ICE", "DTLS", "first packet"} {
			if !strings.Contains(tree, "    "+node+": "+line+"\n") {
				faults = errors.Join(faults, fmt.Errorf("no %q of %s in\n%s", line, node, tree))
			}
		}
		if root.Parent != "" || !strings.HasPrefix(root.Process, "signaling-") || strings.Contains(tree, "parent has not come") {
			faults = errors.Join(faults, fmt.Errorf("not a whole tree of a join:\n%s", tree))
		}
		whole++
	}
	if whole != people {
		faults = errors.Join(faults, fmt.Errorf("%d joins, want %d", whole, people))
	}
	if claims := count(spans, "claim room"); claims == 0 {
		faults = errors.Join(faults, errors.New("nobody claimed the room"))
	}
	return faults
}

func deathTree(t *testing.T, spans []testkit.TracedSpan) string {
	t.Helper()
	for _, root := range spans {
		if root.Name == "node died" {
			return testkit.Tree(spans, root.Trace)
		}
	}
	t.Fatalf("no root of a death in %d spans", len(spans))
	return ""
}

func count(spans []testkit.TracedSpan, name string) (n int) {
	for _, s := range spans {
		if s.Name == name {
			n++
		}
	}
	return n
}

// namesNobody fails if an attribute holds the identity that all of the test's tokens have.
func namesNobody(t *testing.T, spans []testkit.TracedSpan) {
	t.Helper()
	for _, s := range spans {
		if text := fmt.Sprint(s); strings.Contains(text, "secret-identity") {
			t.Errorf("a span names somebody: %s", text)
		}
	}
}
