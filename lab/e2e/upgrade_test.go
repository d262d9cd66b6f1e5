//go:build long

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// formerBuild is the commit that runs beside the present one: the last one before versions were told.
const formerBuild = "4e0e3ee"

// former builds that commit from this repository's history. A clone without history has the present build beside itself: a rolling
// restart, but no upgrade, and the log says so.
func former(t *testing.T, now string) (binary string, protocol uint32) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if exec.CommandContext(ctx, "git", "-C", "../..", "cat-file", "-e", formerBuild+"^{commit}").Run() != nil {
		t.Logf("this clone lacks %s (git fetch --unshallow): the present build is restarted instead", formerBuild)
		return now, 1
	}
	dir := t.TempDir()
	for _, step := range []string{
		"git -C ../.. archive " + formerBuild + " | tar x -C " + dir,
		"cd " + dir + " && CGO_ENABLED=0 GOFLAGS=-trimpath go build -buildvcs=false -ldflags='-s -w' -o former .",
	} {
		if said, err := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", step).CombinedOutput(); err != nil {
			t.Fatalf("build %s: %v\n%s", formerBuild, err, said)
		}
	}
	return filepath.Join(dir, "former"), 0
}

// put copies a binary to where the cluster starts its processes from. One that runs keeps its file.
func put(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to+".next", content, 0o700)
	}
	if err == nil {
		err = os.Rename(to+".next", to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// replace ends a process as an operator does, and starts it again from the binary that lies there now.
func replace(t *testing.T, c *devcluster.Cluster, name string) {
	t.Helper()
	if err := c.Kill(t.Context(), name, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, name+" ends", func() error {
		node, err := c.Node(t.Context(), name)
		if err == nil && node.State != devcluster.StateDead {
			err = fmt.Errorf("it is %s", node.State)
		}
		return err
	})
	restart(t, c, name)
}

// protocols are what a signaling node says that each node speaks, by name.
func protocols(ctx context.Context, c *devcluster.Cluster) (map[string]uint32, error) {
	nodes, err := c.NodesAt(ctx, c.URL())
	spoken := make(map[string]uint32)
	for _, n := range nodes {
		spoken[n.Node] = n.Protocol
	}
	return spoken, err
}

// A rolling upgrade from the former build, and the way back: every process is replaced, one after the other, under calls of
// synthetic people (with the tag long, for it builds the former one). All of them are in their call at each step, under the peer ids that they joined with.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	now, err := devcluster.Binary()
	if err != nil {
		t.Fatal(err)
	}
	before, protocol := former(t, now)
	binary := filepath.Join(t.TempDir(), "holdfast")
	put(t, before, binary)
	c := startCluster(t, devcluster.Options{Binary: binary})
	calls := []*people{gather(t, c, roomOn(t, "sfu-1", "board"), 3), gather(t, c, roomOn(t, "sfu-2", "board"), 2)}
	allReceive(t, time.Minute, calls)
	joined := idsOf(calls)
	for _, way := range []struct {
		name, from string
		protocol   uint32
	}{{"to the present build", now, 1}, {"back to the former one", before, protocol}} {
		put(t, way.from, binary)
		for _, name := range []string{"sfu-1", "sfu-2", "sfu-3", "signaling-1", "signaling-2"} { // media nodes first: only newer signaling nodes know how to drain them
			began := time.Now()
			forgetGaps(calls)
			replace(t, c, name)
			allReceive(t, time.Minute, calls)
			t.Logf("%s: %s replaced in %v, longest gap of any stream %v", way.name, name, time.Since(began).Round(time.Millisecond), longestGap(calls))
			if ids := idsOf(calls); !slices.Equal(ids, joined) {
				t.Errorf("%s, after %s: the people are %v, they joined as %v", way.name, name, ids, joined)
			}
		}
		allOnce(t, c, calls)
		eventually(t, 30*time.Second, "every node tells its protocol", func() error {
			spoken, err := protocols(t.Context(), c)
			for _, name := range []string{"sfu-1", "sfu-2", "sfu-3", "signaling-1", "signaling-2"} {
				if p, ok := spoken[name]; err == nil && (!ok || p != way.protocol) {
					err = fmt.Errorf("%s: %v", name, spoken)
				}
			}
			return err
		})
	}
}

func idsOf(calls []*people) (ids []wire.PeerID) {
	for _, g := range calls {
		for _, p := range g.peers {
			ids = append(ids, p.Stats().Peer)
		}
	}
	return ids
}

func forgetGaps(calls []*people) {
	for _, g := range calls {
		for _, p := range g.peers {
			p.ForgetGaps()
		}
	}
}

func longestGap(calls []*people) (gap time.Duration) {
	for _, g := range calls {
		for _, p := range g.peers {
			_, shown := p.Shown()
			for _, s := range shown {
				gap = max(gap, s.LongestGap)
			}
		}
	}
	return gap.Round(time.Millisecond)
}
