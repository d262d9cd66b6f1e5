package devcluster

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/readiness"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

// aWrongKeyIsNotReady starts a media node with another cluster key, as the first step of an upgrade that went wrong. `holdfast health` says yes
// of a member, and no of that node, with the reason.
func aWrongKeyIsNotReady(t *testing.T, c *Cluster) {
	t.Helper()
	binary, err := builtOnce()
	if err != nil {
		t.Fatal(err)
	}
	health := func(addresses map[string]string) (string, error) {
		said, err := exec.CommandContext(t.Context(), binary, "health", "http://"+addresses[child.AddressMetrics]+readiness.Path).CombinedOutput()
		return string(said), err
	}
	member := node(t, c, "sfu-1").Addresses
	if said, err := health(member); err != nil {
		t.Errorf("a member is not ready: %v %s", err, said)
	}
	log := &testkit.Log{}
	p, err := launch(t.Context(), c.spawner, command{
		binary: binary, stderr: log,
		args: []string{
			"sfu", "--name", "sfu-9", "--log-level", "debug", "--join", member[child.AddressGossip], "--gossip-listen", "127.0.0.1:0",
			"--control-listen", "127.0.0.1:0", "--media-listen", "127.0.0.1:0", "--metrics-listen", "0",
		},
		env: []string{
			"HOLDFAST_CLUSTER_KEY=" + strings.Repeat("another-key", 3), "HOLDFAST_CLUSTER=" + status(t, c).Name,
			"HOLDFAST_STORE=redis://" + node(t, c, "store").Addresses[child.AddressStore],
		},
	}, reportLimit)
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	defer p.end(endLimit)
	testkit.Eventually(t, "the node was refused by a member", func() bool { return strings.Contains(log.String(), "seed not reached") })
	said, err := health(p.report.Addresses)
	if err == nil || !strings.Contains(said, "no other node has been met") || !strings.Contains(said, "cluster key") {
		t.Errorf("with a wrong key a node is told of as %q (%v)", said, err)
	}
}
