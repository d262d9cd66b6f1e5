package e2e

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// seenByAll says whether each signaling node lists the node as live.
func seenByAll(t *testing.T, c *devcluster.Cluster, name string) error {
	t.Helper()
	for _, edge := range []string{"signaling-1", "signaling-2"} {
		node, err := c.Node(t.Context(), edge)
		if err != nil {
			return err
		}
		var answer struct {
			Nodes []devcluster.AdminNode `json:"nodes"`
		}
		if err := c.AdminAt(t.Context(), "http://"+node.Addresses[devcluster.AddressHTTP], "nodes", &answer); err != nil {
			return err
		}
		seen := false
		for _, n := range answer.Nodes {
			seen = seen || n.Node == name
		}
		if !seen {
			return fmt.Errorf("%s does not see %s", edge, name)
		}
	}
	return nil
}

// TestAddedNodeTakesItsShareAndMovesNothing adds a fourth SFU node, and starts
// a killed one again, under running rooms.
func TestAddedNodeTakesItsShareAndMovesNothing(t *testing.T) {
	t.Parallel() // most of it is waiting
	c := startCluster(t, devcluster.Options{})
	var running []*people
	var before []heldRoom
	for _, node := range []ring.NodeID{"sfu-1", "sfu-2", "sfu-3"} {
		g := gather(t, c, roomOn(t, node, "grow-"+string(node)), 2)
		g.everybodyReceives(t, time.Minute)
		running, before = append(running, g), append(before, g.onceOn(t, c, time.Minute))
	}
	pinsBefore := pins(t, c)
	if _, err := c.AddSFU(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "every signaling node sees sfu-4", func() error { return seenByAll(t, c, "sfu-4") })

	const newRooms = 160
	counts := make(map[string]int)
	for _, node := range placeMany(t, c, newRooms) {
		counts[node]++
	}
	// 25 % expected. The ring itself gives a fourth node 21 to 29 % (docs/RING.md),
	// and 160 draws add a binomial deviation of 3.4 %: three of those either way.
	if share := float64(counts["sfu-4"]) / newRooms; share < 0.10 || share > 0.40 {
		t.Errorf("sfu-4 got %.0f %% of the new rooms, want about 25 %%: %v", 100*share, counts)
	}
	t.Logf("%d new rooms: %v", newRooms, counts)

	pinsAfter := pins(t, c)
	for room, p := range pinsBefore {
		if pinsAfter[room] != p {
			t.Errorf("the pin of %s was %v and is %v", room, p, pinsAfter[room])
		}
	}
	for i, g := range running {
		g.everybodyReceives(t, time.Minute)
		sameRoom(t, before[i], g.onceOn(t, c, time.Minute))
	}
}

// TestKilledNodeStaysDeadUntilStarted starts a killed node again: a new boot,
// and no room moves back to it.
func TestKilledNodeStaysDeadUntilStarted(t *testing.T) {
	t.Parallel() // most of it is waiting
	c := startCluster(t, devcluster.Options{})
	g := gather(t, c, roomOn(t, "sfu-1", "again"), 2)
	g.everybodyReceives(t, time.Minute)
	before := g.onceOn(t, c, time.Minute)
	if err := c.Kill(t.Context(), "sfu-1", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	at := g.settledAt(t, 30*time.Second, func(p wire.Placement) bool { return p.Epoch == before.Epoch+1 })
	g.everybodyReceives(t, 30*time.Second)
	if node, err := c.Node(t.Context(), "sfu-1"); err != nil || node.State != devcluster.StateDead {
		t.Fatalf("sfu-1 is %v (%v), want dead", node.State, err)
	}
	if _, err := c.Restart(t.Context(), "sfu-1"); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "every signaling node sees sfu-1", func() error { return seenByAll(t, c, "sfu-1") })
	g.everybodyReceives(t, 30*time.Second)
	if after := g.onceOn(t, c, time.Minute); after.Node != string(at.Node) || after.Epoch != at.Epoch {
		t.Errorf("the room is on %s epoch %d, want %s epoch %d", after.Node, after.Epoch, at.Node, at.Epoch)
	}
}

// placeMany joins n new rooms without media and returns the node of each.
func placeMany(t *testing.T, c *devcluster.Cluster, n int) map[string]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var mu sync.Mutex
	nodes := make(map[string]string)
	var wg sync.WaitGroup
	atOnce := make(chan struct{}, 8)
	for i := range n {
		wg.Go(func() {
			atOnce <- struct{}{}
			defer func() { <-atOnce }()
			room := fmt.Sprintf("new-%d", i)
			node, err := joinOnly(ctx, c, room)
			if err != nil {
				t.Errorf("join %s: %v", room, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			nodes[room] = node
		})
	}
	wg.Wait()
	return nodes
}

// joinOnly joins a room, notes its node and is gone.
func joinOnly(ctx context.Context, c *devcluster.Cluster, room string) (string, error) {
	socket, at, err := joinAs(ctx, c, room, "visitor of "+room)
	if err == nil {
		_ = socket.CloseNow()
	}
	return string(at.Node), err
}
