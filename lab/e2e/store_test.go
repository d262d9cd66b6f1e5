package e2e

import (
	"context"
	"fmt"
	"sync"
	"syscall"
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

// TestStoreThatForgotEverythingMovesNothing restarts the store empty while fifty people a second
// join: rooms that are open, and new ones.
func TestStoreThatForgotEverythingMovesNothing(t *testing.T) {
	c, fleet := onRealStore(t)
	var calls []*people
	for i := range 6 {
		calls = append(calls, gather(t, c, roomOn(t, "sfu-1", fmt.Sprintf("kept-%d", i)), 2))
	}
	for _, g := range calls {
		g.everybodyReceives(t, time.Minute)
	}
	// The rooms are moved away from where the ring has them, or whoever claims one anew would
	// claim it where it is.
	if err := c.Kill(t.Context(), "sfu-1", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	var before []heldRoom
	for _, g := range calls {
		g.settledAt(t, 30*time.Second, func(p wire.Placement) bool { return p.Node != "sfu-1" })
		g.everybodyReceives(t, 30*time.Second)
		before = append(before, g.onceOn(t, c, time.Minute))
	}
	if _, err := c.Restart(t.Context(), "sfu-1"); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	visits := arrive50(ctx, t, c, calls)
	eventually(t, 30*time.Second, "visitors come", func() error { return visits.atLeast(20) })
	for range 2 {
		fleet.Processes[0].Kill(t)
		fleet.Processes[0].Restart(t)
		seen := visits.count()
		eventually(t, 30*time.Second, "visitors come after the store came back", func() error { return visits.atLeast(seen + 50) })
	}
	// Long enough for every owner's next refresh, which would hand over what it lost.
	seen := visits.count()
	eventually(t, time.Minute, "visitors come through the next refreshes", func() error { return visits.atLeast(seen + 150) })
	stop()
	visits.all.Wait()
	for i, g := range calls {
		g.everybodyReceives(t, 30*time.Second)
		sameCall(t, c, before[i], 0)
		for _, p := range g.peers {
			if s := p.Stats(); len(s.Restarts) != 1 || s.Epoch < before[i].Epoch {
				t.Errorf("%s: restarted %d times, want the kill's only; epoch %d, before %d", g.room, len(s.Restarts), s.Epoch, before[i].Epoch)
			}
		}
	}
	held := holdings(t, c)
	for room, on := range held {
		if len(on) != 1 {
			t.Errorf("room %s is held by %d SFU nodes: %+v", room, len(on), on)
		}
	}
	t.Logf("%d visits, %d refused for now, %d rooms held at the end, each once", visits.count(), visits.refusals(), len(held))
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

// arrivals come and go, fifty a second.
type arrivals struct {
	all sync.WaitGroup

	mu           sync.Mutex // guards the fields below
	in, refused  int
	lastRefusals error
}

func (v *arrivals) count() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.in
}

func (v *arrivals) refusals() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.refused
}

func (v *arrivals) atLeast(n int) error {
	if in := v.count(); in < n {
		return fmt.Errorf("%d of %d visits, %d refused: %w", in, n, v.refusals(), v.lastRefusals)
	}
	return nil
}

// arrive50 sends people to the rooms of calls and, every tenth time, to a new room until ctx ends.
func arrive50(ctx context.Context, t *testing.T, c *devcluster.Cluster, calls []*people) *arrivals {
	t.Helper()
	v := &arrivals{}
	v.all.Go(func() {
		tick := time.NewTicker(time.Second / 50)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			room := calls[i%len(calls)].room
			if i%10 == 1 {
				room = fmt.Sprintf("new-%d", i)
			}
			v.all.Go(func() {
				visit, cancel := context.WithTimeout(ctx, 20*time.Second)
				defer cancel()
				socket, _, err := joinAs(visit, c, room, fmt.Sprintf("visitor-%d", i))
				if err == nil {
					_ = socket.CloseNow()
				}
				v.mu.Lock()
				defer v.mu.Unlock()
				if err == nil {
					v.in++
				} else if ctx.Err() == nil {
					v.refused++
					v.lastRefusals = err
				}
			})
		}
	})
	return v
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
