package cli

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// TestANodeIsNewerThanItsFormerLifeWithAWrongClock: without a store, a media node and a signaling node learn by gossip that their former
// lives began in the future, by a clock that was ahead. The cluster must take the new processes for the newer ones at once.
func TestANodeIsNewerThanItsFormerLifeWithAWrongClock(t *testing.T) {
	t.Setenv("HOLDFAST_CLUSTER_KEY", goodKey)
	t.Setenv("HOLDFAST_API_KEYS", goodKeys)
	key, err := control.ParseClusterKey(goodKey)
	if err != nil {
		t.Fatal(err)
	}
	if key, err = key.In(pin.DefaultCluster); err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	member := func(ctx context.Context, node cluster.Node, join ...string) *cluster.Cluster {
		c, err := cluster.New(cluster.Config{
			Node: node, Bind: "127.0.0.1:0", Join: join, Solo: len(join) == 0, Name: pin.DefaultCluster, Keys: key.GossipKeys(),
		}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() { _ = c.Run(ctx) })
		<-c.Running()
		return c
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	boot := func(in time.Duration) pin.BootID { return pin.NewBootID(time.Now().Add(in)) }
	other := member(ctx, cluster.Node{ID: "other", Boot: boot(0), Role: cluster.RoleSignaling})
	for role, line := range map[cluster.Role]string{
		cluster.RoleSFU:       "sfu --control-listen 127.0.0.1:0 --media-listen 127.0.0.1:0",
		cluster.RoleSignaling: "signaling --control-listen 127.0.0.1:0 --listen 127.0.0.1:0",
	} {
		t.Run(string(role), func(t *testing.T) {
			former := cluster.Node{ID: "one", Boot: boot(time.Hour), Role: role, Control: "127.0.0.1:1", Media: "127.0.0.1:1"}
			seen := func() pin.BootID {
				nodes := map[cluster.Role]map[ring.NodeID]cluster.Node{cluster.RoleSFU: other.View().Nodes, cluster.RoleSignaling: other.View().Signaling}
				return nodes[role]["one"].Boot
			}
			life, kill := context.WithCancel(ctx)
			member(life, former, other.LocalAddr())
			testkit.Eventually(t, "the former life is seen", func() bool { return seen() == former.Boot })
			kill()

			line += " --name one --gossip-listen 127.0.0.1:0 --store redis://127.0.0.1:1 --join " + other.LocalAddr()
			var said strings.Builder
			node, stop := context.WithCancel(ctx)
			var code int
			var ended sync.WaitGroup
			ended.Go(func() {
				code = run(node, strings.Fields(line), streams{in: strings.NewReader(""), out: &said, err: &said})
			})
			testkit.Eventually(t, "the new life is seen as the newer one", func() bool { return seen().Newer(former.Boot) })
			stop()
			ended.Wait()
			if code != exitDone {
				t.Errorf("exit code %d\n%s", code, said.String())
			}
		})
	}
}
