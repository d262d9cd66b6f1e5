package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore"
	"github.com/holdfast-rtc/holdfast/ring"
)

func startCluster(t *testing.T, options devcluster.Options) *devcluster.Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	c, err := devcluster.Start(ctx, options)
	if err != nil {
		t.Fatalf("start the cluster: %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, name := range []string{"signaling-1", "signaling-2", "sfu-1", "sfu-2", "sfu-3"} {
				text, _ := c.Logs(context.Background(), name)
				t.Logf("log of %s:\n%s", name, tail(text, 60))
			}
		}
		c.Close()
	})
	return c
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// roomOn finds a room name whose ring owner is the node; an idle cluster places it there.
func roomOn(t *testing.T, node ring.NodeID, prefix string) string {
	t.Helper()
	r := ring.New([]ring.NodeID{"sfu-1", "sfu-2", "sfu-3"})
	for i := range 1000 {
		room := fmt.Sprintf("%s-%d", prefix, i)
		if owner, _ := r.Owner(ring.RoomID(room)); owner == node {
			return room
		}
	}
	t.Fatalf("no room name in 1000 is owned by %s", node)
	return ""
}

type heldRoom = devcluster.AdminRoom

func holdings(t *testing.T, c *devcluster.Cluster) map[string][]heldRoom {
	t.Helper()
	byRoom, err := askHoldings(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return byRoom
}

// askHoldings asks every live media node which rooms it holds.
func askHoldings(ctx context.Context, c *devcluster.Cluster) (map[string][]heldRoom, error) {
	rooms, err := c.RoomsAt(ctx, c.URL())
	byRoom := make(map[string][]heldRoom)
	for _, r := range rooms {
		byRoom[r.Room] = append(byRoom[r.Room], r)
	}
	return byRoom, err
}

// heldOnce fails unless exactly one SFU holds the room, and returns it.
func heldOnce(t *testing.T, c *devcluster.Cluster, room string) heldRoom {
	t.Helper()
	held := holdings(t, c)[room]
	if len(held) != 1 {
		t.Fatalf("room %s is held by %d SFU nodes, want 1: %+v", room, len(held), held)
	}
	return held[0]
}

// pins reads every pin from the store.
func pins(t *testing.T, c *devcluster.Cluster) map[string]pin.Pin {
	t.Helper()
	node, err := c.Node(t.Context(), "store")
	if err != nil {
		t.Fatal(err)
	}
	store, err := redisstore.Open("redis://"+node.Addresses[devcluster.AddressStore], quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	found := make(map[string]pin.Pin)
	err = store.AllPins(t.Context(), func(h pin.Holding) error {
		found[string(h.Room)] = h.Pin
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// pinsNameOnlyLiveNodes checks every pin against the processes that run.
func pinsNameOnlyLiveNodes(t *testing.T, c *devcluster.Cluster) {
	t.Helper()
	nodes, err := c.AdminNodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	live := make(map[string]bool)
	for _, n := range nodes {
		live[n.Boot] = true
	}
	for room, p := range pins(t, c) {
		if !live[string(p.Boot)] {
			t.Errorf("the pin of %s names %s boot %s, which is not alive", room, p.Node, p.Boot)
		}
	}
}
