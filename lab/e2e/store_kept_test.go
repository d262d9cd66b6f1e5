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

// storeGap is the longest pause of a stream that may come of a store's fault. Packets of sound come every
// 20 ms, those of a picture every 100.
const storeGap = time.Second

// onStore runs a cluster on a store of the test's own.
func onStore(t *testing.T, fleet storetest.Fleet) *devcluster.Cluster {
	t.Helper()
	return startCluster(t, devcluster.Options{Redis: fleet.URL})
}

// kept are calls that a fault of the store must not touch.
type kept struct {
	calls  []*people
	before map[string]heldRoom

	longest time.Duration // pause of a stream that is allowed

	watch sync.WaitGroup
	stop  context.CancelFunc
	mu    sync.Mutex // guards the fields below
	looks int        // at all SFU nodes
	wrong []string   // what they saw; the first ten
}

// keep takes calls whose people all hear each other under watch: from now on every SFU is asked, again and
// again, whether it holds them.
func keep(t *testing.T, c *devcluster.Cluster, calls []*people) *kept {
	t.Helper()
	allReceive(t, time.Minute, calls)
	k := &kept{calls: calls, before: allOnce(t, c, calls), longest: storeGap}
	k.forgetGaps()
	k.begin(t, c)
	return k
}

// keepRooms takes rooms under watch whose people somebody else looks after.
func keepRooms(t *testing.T, c *devcluster.Cluster, rooms map[string][]heldRoom) *kept {
	t.Helper()
	k := &kept{before: make(map[string]heldRoom)}
	for room, on := range rooms {
		if len(on) != 1 {
			t.Fatalf("room %s is held by %d SFU nodes, want 1: %+v", room, len(on), on)
		}
		k.before[room] = on[0]
	}
	k.begin(t, c)
	return k
}

func (k *kept) begin(t *testing.T, c *devcluster.Cluster) {
	ctx, cancel := context.WithCancel(context.Background())
	k.stop = cancel
	t.Cleanup(k.end)
	k.watch.Go(func() {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				k.look(ctx, c)
			}
		}
	})
}

func (k *kept) forgetGaps() {
	for _, g := range k.calls {
		for _, p := range g.peers {
			p.ForgetGaps()
		}
	}
}

// keepElsewhere keeps n rooms of two that live elsewhere than the ring says: whoever claims one anew would claim it
// elsewhere.
func keepElsewhere(t *testing.T, c *devcluster.Cluster, n int) *kept {
	t.Helper()
	var calls []*people
	for i := range n {
		calls = append(calls, gather(t, c, roomOn(t, "sfu-1", fmt.Sprintf("kept-%d", i)), 2))
	}
	allReceive(t, time.Minute, calls)
	if err := c.Kill(t.Context(), "sfu-1", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, g := range calls {
		g.settledAt(t, 30*time.Second, func(p wire.Placement) bool { return p.Node != "sfu-1" })
	}
	if _, err := c.Restart(t.Context(), "sfu-1"); err != nil {
		t.Fatal(err)
	}
	eventually(t, 30*time.Second, "every signaling node sees sfu-1", func() error { return seenByAll(t, c, "sfu-1") })
	return keep(t, c, calls)
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

// allOnce waits until one SFU holds each call with all its people attached.
func allOnce(t *testing.T, c *devcluster.Cluster, calls []*people) map[string]heldRoom {
	t.Helper()
	once := make(map[string]heldRoom)
	eventually(t, time.Minute, "one SFU holds each room", func() error {
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

func (k *kept) look(ctx context.Context, c *devcluster.Cluster) {
	held, err := askHoldings(ctx, c)
	if err != nil {
		return // one that does not answer is the end's business
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.looks++
	for room, was := range k.before {
		if err := sameHolder(was, held[room]); err != nil && len(k.wrong) < 10 {
			k.wrong = append(k.wrong, err.Error())
		}
	}
}

// sameHolder fails unless one SFU holds the room, the one of before, and at no lower epoch.
func sameHolder(was heldRoom, held []heldRoom) error {
	if len(held) != 1 || held[0].Node != was.Node || held[0].Epoch < was.Epoch {
		return fmt.Errorf("room %s was on %s at epoch %d and is held so: %+v", was.Room, was.Node, was.Epoch, held)
	}
	return nil
}

func (k *kept) end() {
	k.stop()
	k.watch.Wait()
}

// untouched ends the watch and fails unless every call is as it was: media never paused, the same connections on the
// same node, and no visitor was sent elsewhere. It returns the longest gap.
func (k *kept) untouched(t *testing.T, c *devcluster.Cluster, visits []visit) time.Duration {
	t.Helper()
	allReceive(t, 30*time.Second, k.calls)
	k.end()
	for _, what := range k.wrong {
		t.Error(what)
	}
	if k.looks == 0 {
		t.Error("nobody looked who holds the rooms")
	}
	after := holdings(t, c)
	for room, was := range k.before {
		if err := sameHolder(was, after[room]); err != nil {
			t.Error(err)
			continue
		}
		sameConnections(t, was, after[room][0])
	}
	gap := time.Duration(0)
	for _, g := range k.calls {
		for i, p := range g.peers {
			longest := longestGap(t, fmt.Sprintf("person %d of %s", i, g.room), p, len(g.peers)-1)
			gap = max(gap, longest)
			if longest > k.longest {
				t.Errorf("%s: person %d had a stream that paused for %v, want at most %v", g.room, i, longest, k.longest)
			}
		}
	}
	for room, on := range after {
		if len(on) != 1 {
			t.Errorf("room %s is held by %d SFU nodes: %+v", room, len(on), on)
		}
	}
	for _, v := range visits {
		if was, ours := k.before[v.room]; ours && v.err == nil && (string(v.at.Node) != was.Node || v.at.Epoch < was.Epoch) {
			t.Errorf("a visitor of %s was sent to %s epoch %d; it is on %s epoch %d", v.room, v.at.Node, v.at.Epoch, was.Node, was.Epoch)
		}
	}
	return gap
}

func sameConnections(t *testing.T, was, is heldRoom) {
	t.Helper()
	offers := is.Offers()
	for _, p := range was.Peers {
		if n, there := offers[p.Peer]; !there || n != p.Offers {
			t.Errorf("room %s: %s offered %d times, before %d (there: %t)", was.Room, p.Peer, n, p.Offers, there)
		}
	}
}

// longestGap is the longest pause of what a peer gets of the others, a sound and a picture each.
func longestGap(t *testing.T, who string, p *peer.Peer, others int) time.Duration {
	t.Helper()
	gap, shown := time.Duration(0), 0
	now := time.Now()
	for _, stream := range p.Stats().Streams {
		if stream.Shown && stream.Packets > 0 {
			shown++
			gap = max(gap, stream.GapUntil(now))
		}
	}
	if shown < 2*others {
		t.Errorf("%s is shown %d streams, want %d", who, shown, 2*others)
	}
	return gap
}
