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

type people struct {
	room  string
	peers []*peer.Peer
}

// gather lets n synthetic peers join a room through the front.
func gather(t *testing.T, c *devcluster.Cluster, room string, n int) *people {
	t.Helper()
	g := &people{room: room}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	for i := range n {
		token, err := c.Token(room, fmt.Sprintf("person-%d", i))
		if err != nil {
			t.Fatal(err)
		}
		p, err := peer.New(peer.Options{URL: c.URL(), Token: token, Room: room}, quiet())
		if err != nil {
			t.Fatal(err)
		}
		g.peers = append(g.peers, p)
		wg.Go(func() {
			if err := p.Run(ctx); err != nil {
				t.Errorf("person-%d of %s: %v", i, room, err)
			}
		})
	}
	return g
}

// everybodyReceives waits until each peer gets fresh packets of the microphone
// and the camera of each other, counted from now.
func (g *people) everybodyReceives(t *testing.T, limit time.Duration) {
	t.Helper()
	since := time.Now()
	eventually(t, limit, "everybody in "+g.room+" receives everybody", func() error { return g.receiveSince(since) })
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
			if from == "" {
				return fmt.Errorf("person-%d has not joined", j)
			}
			for _, source := range []wire.Source{wire.SourceMicrophone, wire.SourceCamera} {
				if s := at.Streams[peer.StreamID{Peer: from, Source: source}]; !s.Last.After(since) {
					return fmt.Errorf("person-%d has no fresh %s of person-%d (%d packets so far, node %s epoch %d)", i, source, j, s.Packets, at.Node, at.Epoch)
				}
			}
		}
	}
	return nil
}

// settledAt waits until every peer says the same placement, and returns it.
func (g *people) settledAt(t *testing.T, limit time.Duration, want func(wire.Placement) bool) wire.Placement {
	t.Helper()
	var at wire.Placement
	eventually(t, limit, "everybody in "+g.room+" is told the same placement", func() error {
		for i, p := range g.peers {
			s := p.Stats()
			if i == 0 {
				at = wire.Placement{Node: s.Node, Epoch: s.Epoch}
			}
			if s.Node != at.Node || s.Epoch != at.Epoch {
				return fmt.Errorf("person-0 is at %+v, person-%d at %s %d", at, i, s.Node, s.Epoch)
			}
		}
		if !want(at) {
			return fmt.Errorf("they are at %+v", at)
		}
		return nil
	})
	return at
}

// onceOn waits until exactly one SFU holds the room with all its peers attached
// and no SFU failed to answer.
func (g *people) onceOn(t *testing.T, c *devcluster.Cluster, limit time.Duration) heldRoom {
	t.Helper()
	var held heldRoom
	eventually(t, limit, "one SFU holds "+g.room, func() error {
		all, err := askHoldings(t.Context(), c)
		if err != nil {
			return err
		}
		if err := allAttached(all[g.room], len(g.peers)); err != nil {
			return err
		}
		held = all[g.room][0]
		return nil
	})
	return held
}
