package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/child"
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

// kill ends a node with SIGKILL.
func kill(t *testing.T, c *devcluster.Cluster, node string) {
	t.Helper()
	if err := c.Kill(t.Context(), node, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// restart starts a dead node again, with more environment, and returns when the cluster sees it.
func restart(t *testing.T, c *devcluster.Cluster, node string, env ...string) {
	t.Helper()
	if _, err := c.StartNode(t.Context(), node, env...); err != nil {
		t.Fatal(err)
	}
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
	store, err := redisstore.Open("redis://"+node.Addresses[child.AddressStore], quiet())
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

// pinsNameOnlyLiveNodes checks every pin against the processes that run. A sweep removes those of rooms that nobody is in.
func pinsNameOnlyLiveNodes(t *testing.T, c *devcluster.Cluster) {
	t.Helper()
	eventually(t, 2*time.Minute, "every pin names a live node", func() error {
		nodes, err := c.AdminNodes(t.Context())
		live := make(map[string]bool)
		for _, n := range nodes {
			live[n.Boot] = true
		}
		for room, p := range pins(t, c) {
			if !live[string(p.Boot)] {
				err = errors.Join(err, fmt.Errorf("the pin of %s names %s boot %s, which is not alive", room, p.Node, p.Boot))
			}
		}
		return err
	})
}

// sameRoom checks that a room was not touched: same node and epoch, no drop, no new offer.
func sameRoom(t *testing.T, before, after heldRoom) {
	t.Helper()
	if after.Node != before.Node || after.Epoch != before.Epoch || after.Lost() != before.Lost() {
		t.Errorf("room %s: %s epoch %d with %d drops became %s epoch %d with %d drops", before.Room,
			before.Node, before.Epoch, before.Lost(), after.Node, after.Epoch, after.Lost())
	}
	offers := before.Offers()
	for _, p := range after.Peers {
		if p.Offers != offers[p.Peer] {
			t.Errorf("room %s: peer %s offered %d times, before %d", before.Room, p.Peer, p.Offers, offers[p.Peer])
		}
	}
	if after.PacketsForwarded <= before.PacketsForwarded {
		t.Errorf("room %s: no packet was forwarded meanwhile", before.Room)
	}
}

func allAttached(held []heldRoom, want int) error {
	if len(held) != 1 {
		return fmt.Errorf("held by %d nodes", len(held))
	}
	attached := 0
	for _, p := range held[0].Peers {
		if p.Attached {
			attached++
		}
	}
	if attached != want {
		return fmt.Errorf("%d of %d peers are attached to a signaling node", attached, want)
	}
	return nil
}
