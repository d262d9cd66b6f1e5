package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// onRealStore runs a cluster on a redis-server of the test's own.
func onRealStore(t *testing.T) (*devcluster.Cluster, storetest.Fleet) {
	t.Helper()
	fleet := storetest.StartAlone(t)
	return startCluster(t, devcluster.Options{Redis: fleet.URL}), fleet
}

// TestRunningCallsDoNotNeedTheStore kills the store under twenty people in ten rooms: media
// goes on, people join the rooms that are known, a new room is refused for now, and gets in when the
// store is back, without anybody doing anything.
func TestRunningCallsDoNotNeedTheStore(t *testing.T) {
	t.Parallel() // most of it is waiting
	c, fleet := onRealStore(t)
	var calls []*people
	for i := range 10 {
		calls = append(calls, gather(t, c, fmt.Sprintf("call-%d", i), 2))
	}
	var before []heldRoom
	for _, g := range calls {
		g.everybodyReceives(t, time.Minute)
	}
	for _, g := range calls {
		before = append(before, g.onceOn(t, c, time.Minute))
	}
	killedAt := time.Now()
	fleet.Processes[0].Kill(t)

	// More than the 15 s for which an owner trusts its last confirmation would
	// be needed to see the majority at work; the first seconds are where a fault would show.
	late := gatherAs(t, c, calls[0].room, "late", 1)
	lateIn := calls[0].with(late)
	lateIn.everybodyReceives(t, 30*time.Second)
	fresh := gatherAs(t, c, "new-while-away", "new", 1)
	eventually(t, 30*time.Second, "the new room is refused for now", func() error {
		if s := fresh.peers[0].Stats(); s.Codes[wire.CodeStoreUnavailable] == 0 {
			return fmt.Errorf("joined: %v, codes %v", s.Joined, s.Codes)
		}
		return nil
	})
	if fresh.peers[0].Stats().Joined {
		t.Error("a new room was placed without a store")
	}
	for _, g := range calls {
		g.everybodyReceives(t, 30*time.Second)
	}

	fleet.Processes[0].Restart(t)
	back := time.Now()
	eventually(t, 30*time.Second, "the new room gets in", func() error {
		if s := fresh.peers[0].Stats(); !s.Joined {
			return fmt.Errorf("codes %v", s.Codes)
		}
		return nil
	})
	t.Logf("the store was away for %v; the waiting client was in %v after it answered", back.Sub(killedAt).Round(time.Millisecond), fresh.peers[0].Stats().JoinedAt.Sub(back).Round(time.Millisecond))
	gap := time.Duration(0)
	for i, g := range calls {
		size := len(g.peers)
		if i == 0 {
			size++
			g = lateIn
		}
		g.everybodyReceives(t, 30*time.Second)
		sameCall(t, c, before[i], size)
		for _, p := range g.peers {
			for id, stream := range p.Stats().Streams {
				if id.Source == wire.SourceMicrophone {
					gap = max(gap, stream.LongestGap)
				}
			}
		}
	}
	t.Logf("longest gap between two packets of anybody's microphone: %v", gap)
	if gap > maxUndisturbedGap {
		t.Errorf("a microphone was silent for %v while the store was away, want at most %v", gap, maxUndisturbedGap)
	}
}

// sameCall fails unless one SFU holds the room, the one of before, and at no lower epoch. size 0
// leaves out how many people are there.
func sameCall(t *testing.T, c *devcluster.Cluster, before heldRoom, size int) {
	t.Helper()
	after := heldOnce(t, c, before.Room)
	if after.Node != before.Node || after.Epoch < before.Epoch {
		t.Errorf("room %s went from %s epoch %d to %s epoch %d", before.Room, before.Node, before.Epoch, after.Node, after.Epoch)
	}
	if size != 0 && len(after.Peers) != size {
		t.Errorf("room %s has %d peers, want %d", before.Room, len(after.Peers), size)
	}
	for _, was := range before.Peers {
		for _, is := range after.Peers {
			if was.Peer == is.Peer && was.Offers != is.Offers {
				t.Errorf("room %s: %s offered again", before.Room, was.Peer)
			}
		}
	}
}

// gatherAs is gather with other names.
func gatherAs(t *testing.T, c *devcluster.Cluster, room, name string, n int) *people {
	t.Helper()
	g := &people{room: room}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	for i := range n {
		token, err := c.Token(room, fmt.Sprintf("%s-%d", name, i))
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
				t.Errorf("%s-%d of %s: %v", name, i, room, err)
			}
		})
	}
	return g
}

// with is both groups of one room.
func (g *people) with(others *people) *people {
	return &people{room: g.room, peers: append(append([]*peer.Peer(nil), g.peers...), others.peers...)}
}
