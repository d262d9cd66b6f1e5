package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// people are synthetic peers in a room.
type people struct {
	room  string
	peers []*peer.Peer
}

// gather lets n peers join a room through the front. They leave when the test ends.
func gather(t *testing.T, c *devcluster.Cluster, room string, n int) *people {
	t.Helper()
	return gatherAs(t, c, room, n, peer.Options{})
}

func gatherAs(t *testing.T, c *devcluster.Cluster, room string, n int, options peer.Options) *people {
	t.Helper()
	g := &people{room: room}
	ctx, cancel := context.WithCancel(context.Background())
	var living sync.WaitGroup
	t.Cleanup(func() { cancel(); living.Wait() })
	var err error
	if options.Stack == nil {
		options.Stack, err = peer.NewStack(peer.VideoLight)
	}
	for i := range n {
		options.URL, options.Room = c.URL(), room
		if err == nil {
			options.Token, err = c.Token(room, fmt.Sprintf("%s's person-%d", room, i))
		}
		if err != nil {
			t.Fatal(err)
		}
		p, err := peer.New(options, quiet())
		if err != nil {
			t.Fatal(err)
		}
		g.peers = append(g.peers, p)
		living.Go(func() {
			if err := p.Run(ctx); err != nil {
				t.Errorf("person-%d of %s: %v", i, room, err)
			}
		})
	}
	return g
}

// everybodyReceives waits until each peer gets fresh packets of the microphone and the camera of each other, counted
// from now.
func (g *people) everybodyReceives(t *testing.T, limit time.Duration) {
	t.Helper()
	allReceive(t, limit, []*people{g})
}

func allReceive(t *testing.T, limit time.Duration, calls []*people) {
	t.Helper()
	since := time.Now()
	eventually(t, limit, "everybody receives everybody", func() error {
		for _, g := range calls {
			if err := g.receiveSince(since); err != nil {
				return fmt.Errorf("room %s: %w", g.room, err)
			}
		}
		return nil
	})
}

// receiveSince fails unless each peer has got packets of both streams of each other since a moment.
func (g *people) receiveSince(since time.Time) error {
	for i, receiver := range g.peers {
		at := receiver.Stats()
		if !at.Joined {
			return fmt.Errorf("person-%d has not joined: %v", i, at.Codes)
		}
		for j, sender := range g.peers {
			if i == j {
				continue
			}
			from := sender.Stats().Peer
			for _, source := range []wire.Source{wire.SourceMicrophone, wire.SourceCamera} {
				if s := at.Streams[peer.StreamID{Peer: from, Source: source}]; from == "" || !s.Last.After(since) {
					return fmt.Errorf("person-%d has no fresh %s of person-%d (%d packets so far, node %s epoch %d)", i, source, j, s.Packets, at.Node, at.Epoch)
				}
			}
		}
	}
	return nil
}

// leavesNode waits until every peer is told the same placement, on another node.
func (g *people) leavesNode(t *testing.T, node string) {
	t.Helper()
	eventually(t, 30*time.Second, "everybody in "+g.room+" is told of another node than "+node, func() error {
		first := g.peers[0].Stats()
		for i, p := range g.peers {
			if s := p.Stats(); s.Node != first.Node || s.Epoch != first.Epoch || string(s.Node) == node {
				return fmt.Errorf("person-%d is at %s %d, person-0 at %s %d", i, s.Node, s.Epoch, first.Node, first.Epoch)
			}
		}
		return nil
	})
}

// onceOn waits until exactly one media node holds the room with all its peers attached.
func (g *people) onceOn(t *testing.T, c *devcluster.Cluster) heldRoom {
	t.Helper()
	return allOnce(t, c, []*people{g})[g.room]
}

// allOnce waits until one media node holds each call with all its people attached.
func allOnce(t *testing.T, c *devcluster.Cluster, calls []*people) map[string]heldRoom {
	t.Helper()
	once := make(map[string]heldRoom)
	eventually(t, time.Minute, "one media node holds each room", func() error {
		all, err := askHoldings(t.Context(), c)
		if err != nil {
			return err
		}
		for _, g := range calls {
			if err := allAttached(all[g.room], len(g.peers)); err != nil {
				return fmt.Errorf("room %s: %w", g.room, err)
			}
			once[g.room] = all[g.room][0]
		}
		return nil
	})
	return once
}
