package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// storeGap is the longest pause of a stream that a busy machine is allowed. That nothing moved is seen by the connections.
const storeGap = 3 * time.Second

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
	return k
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
	kill(t, c, "sfu-1")
	for _, g := range calls {
		g.leavesNode(t, "sfu-1")
	}
	restart(t, c, "sfu-1")
	return keep(t, c, calls)
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
	gap, lag := k.longestGap(t), time.Duration(0)
	for _, g := range k.calls {
		for _, p := range g.peers {
			lag = max(lag, p.Stats().SendLag) // the machine's fault
		}
	}
	if gap > k.longest+lag {
		t.Errorf("a stream paused for %v, want at most %v; its sender was late by %v at most", gap, k.longest, lag)
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

// longestGap is the longest pause of what the people get of the others, a sound and a picture each.
func (k *kept) longestGap(t *testing.T) (gap time.Duration) {
	t.Helper()
	now := time.Now()
	for _, g := range k.calls {
		for i, p := range g.peers {
			shown := 0
			for _, stream := range p.Stats().Streams {
				if stream.Shown && stream.Packets > 0 {
					shown++
					gap = max(gap, stream.GapUntil(now))
				}
			}
			if shown < 2*(len(g.peers)-1) {
				t.Errorf("person %d of %s is shown %d streams", i, g.room, shown)
			}
		}
	}
	return gap
}
