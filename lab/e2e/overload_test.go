//go:build long && linux

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/lab/peer"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestADeathWithTooLittleRoomElsewhere fills three media nodes to 70 % of small ceilings and kills one. Nobody in a call is refused,
// sound is back within a second, and no survivor stays above its ceiling: pictures become smaller. Then a node is added, and all comes
// back. Only with the tag long: it prints what it measured.
func TestADeathWithTooLittleRoomElsewhere(t *testing.T) {
	t.Parallel()
	takes(t, 4)
	c, watch := startSmallNodes(t)
	calls := fill(t, c, watch, 3*0.70)
	<-time.After(10 * time.Second)
	before := allOnce(t, c, calls)
	t.Logf("%d calls of two: %s", len(calls), watch.told())
	longestGaps(calls)
	<-time.After(5 * time.Second)
	t.Logf("still: sound %s, pictures %s", spread(gapsOf(calls, wire.SourceMicrophone)), spread(gapsOf(calls, wire.SourceCamera)))
	longestGaps(calls)
	so, at := bytesReceived(calls), time.Now()

	watch.forget()
	kill(t, c, "sfu-1")
	killed := time.Now()
	allReceive(t, time.Minute, calls)
	t.Logf("everybody hears and sees everybody again after %v", time.Since(killed).Round(10*time.Millisecond))
	<-time.After(20 * time.Second)
	after := allOnce(t, c, calls)
	moved := 0
	for room, was := range before {
		if after[room].Epoch != was.Epoch {
			moved++
			if was.Node != "sfu-1" {
				t.Errorf("room %s was on %s, which lives, and has moved", room, was.Node)
			}
		}
	}
	sound := gapsOf(calls, wire.SourceMicrophone)
	t.Logf("the kill: %d of %d calls moved; sound %s, pictures %s; %s", moved, len(calls), spread(sound), spread(gapsOf(calls, wire.SourceCamera)), watch.told())
	if longest := sound[len(sound)-1]; longest > time.Second {
		t.Errorf("somebody heard nothing for %v", longest)
	}
	if over := watch.longestOver(); over > time.Second {
		t.Errorf("a survivor was above its ceiling for %v", over)
	}
	if watch.limited(t, c) == 0 {
		t.Error("nobody holds pictures back, and there is too little room")
	}
	few := bitsEach(calls, so, at)

	longestGaps(calls)
	added := time.Now()
	if _, err := c.AddSFU(t.Context(), smallCeiling()...); err != nil {
		t.Fatal(err)
	}
	eventually(t, 4*time.Minute, "nobody holds pictures back", func() error {
		if n := watch.limited(t, c); n > 0 {
			return fmt.Errorf("%d nodes do: %s", n, watch.told())
		}
		return nil
	})
	back := time.Since(added)
	t.Logf("a node was added: after %v nobody holds pictures back; %s; sound %s, pictures %s", back.Round(time.Second), watch.told(),
		spread(gapsOf(calls, wire.SourceMicrophone)), spread(gapsOf(calls, wire.SourceCamera)))
	allReceive(t, time.Minute, calls)
	so, at = bytesReceived(calls), time.Now()
	<-time.After(10 * time.Second)
	many := bitsEach(calls, so, at)
	t.Logf("each of %d people got %.2f Mbit/s while pictures were held back, %.2f afterwards", 2*len(calls), few/1e6, many/1e6)
	if many <= few {
		t.Error("the pictures have not come back")
	}
}

// TestADeathWithRoomElsewhere fills three media nodes to half of small ceilings and kills one: nobody's picture becomes smaller.
func TestADeathWithRoomElsewhere(t *testing.T) {
	t.Parallel()
	takes(t, 4)
	c, watch := startSmallNodes(t)
	calls := fill(t, c, watch, 3*0.50)
	<-time.After(10 * time.Second)
	t.Logf("%d calls of two: %s", len(calls), watch.told())
	so, at := bytesReceived(calls), time.Now()
	<-time.After(10 * time.Second)
	before := bitsEach(calls, so, at)
	longestGaps(calls)
	watch.forget()
	kill(t, c, "sfu-1")
	killed := time.Now()
	allReceive(t, time.Minute, calls)
	t.Logf("everybody hears and sees everybody again after %v", time.Since(killed).Round(10*time.Millisecond))
	so, at = bytesReceived(calls), time.Now()
	for time.Since(at) < 10*time.Second {
		if watch.limited(t, c) > 0 {
			t.Fatalf("%v after the death pictures are held back: %s", time.Since(killed), watch.told())
		}
		<-time.After(100 * time.Millisecond)
	}
	t.Logf("the kill: sound %s, pictures %s; %s; each of %d people got %.2f Mbit/s before and %.2f afterwards", spread(gapsOf(calls, wire.SourceMicrophone)),
		spread(gapsOf(calls, wire.SourceCamera)), watch.told(), 2*len(calls), before/1e6, bitsEach(calls, so, at)/1e6)
}

const smallBits = 30_000_000

func smallCeiling() []string { return []string{fmt.Sprintf("HOLDFAST_EGRESS_BITS=%d", smallBits)} }

func startSmallNodes(t *testing.T) (*devcluster.Cluster, *loadWatch) {
	t.Helper()
	env := smallCeiling()
	c := startCluster(t, devcluster.Options{SFU: 3, Signaling: 2, NodeEnv: map[string][]string{"sfu-1": env, "sfu-2": env, "sfu-3": env}})
	return c, watchLoads(t, c, smallBits)
}

// fill opens calls of two until all nodes together send so many times one's ceiling.
func fill(t *testing.T, c *devcluster.Cluster, watch *loadWatch, ceilings float64) (calls []*people) {
	t.Helper()
	const mostRooms = 24
	for watch.total() < ceilings && len(calls) < mostRooms {
		stack, err := peer.NewStack(peer.VideoSimulcast)
		if err != nil {
			t.Fatal(err)
		}
		calls = append(calls, gatherAs(t, c, fmt.Sprintf("warm-%d", len(calls)), 2, peer.Options{Stack: stack}))
		allReceive(t, time.Minute, calls)
		<-time.After(1500 * time.Millisecond) // until it is measured
	}
	return calls
}

func bytesReceived(calls []*people) (bytes uint64) {
	for _, g := range calls {
		for _, p := range g.peers {
			for _, stream := range p.Stats().Streams {
				bytes += stream.Bytes
			}
		}
	}
	return bytes
}

// bitsEach is what each person got in a second, since so many bytes had come.
func bitsEach(calls []*people, so uint64, at time.Time) float64 {
	people := 0
	for _, g := range calls {
		people += len(g.peers)
	}
	return 8 * float64(bytesReceived(calls)-so) / time.Since(at).Seconds() / float64(people)
}

// gapsOf are the longest pauses of the streams of one source, sorted.
func gapsOf(calls []*people, source wire.Source) (gaps []time.Duration) {
	for _, g := range calls {
		for _, p := range g.peers {
			for id, stream := range p.Stats().Streams {
				if id.Source == source {
					gaps = append(gaps, stream.GapUntil(time.Now()))
				}
			}
		}
	}
	slices.Sort(gaps)
	return gaps
}

func spread(sorted []time.Duration) string {
	if len(sorted) == 0 {
		return "none"
	}
	at := func(percent int) time.Duration { return sorted[(len(sorted)-1)*percent/100].Round(time.Millisecond) }
	return fmt.Sprintf("p50 %v p95 %v most %v", at(50), at(95), at(100))
}

// loadWatch asks every quarter of a second what each media node sends.
type loadWatch struct {
	ceiling float64

	mu    sync.Mutex           // guards the fields below
	sends map[string]float64   // share of the ceiling
	most  map[string]float64   // since forget
	since map[string]time.Time // since when it is above
	over  time.Duration        // the longest time that one was
}

func watchLoads(t *testing.T, c *devcluster.Cluster, ceiling float64) *loadWatch {
	t.Helper()
	w := &loadWatch{ceiling: ceiling}
	w.forget()
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	t.Cleanup(func() { cancel(); watching.Wait() })
	watching.Go(func() {
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if rooms, err := c.RoomsAt(ctx, c.URL()); err == nil {
				w.saw(rooms, time.Now())
			}
		}
	})
	return w
}

func (w *loadWatch) saw(rooms []heldRoom, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.sends)
	for _, r := range rooms {
		w.sends[r.Node] += float64(r.EgressBitsPerSecond) / w.ceiling
	}
	for node, share := range w.sends {
		w.most[node] = max(w.most[node], share)
		if share <= 1 {
			delete(w.since, node)
			continue
		}
		if w.since[node].IsZero() {
			w.since[node] = now
		}
		w.over = max(w.over, now.Sub(w.since[node]))
	}
}

func (w *loadWatch) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sends, w.most, w.since, w.over = map[string]float64{}, map[string]float64{}, map[string]time.Time{}, 0
}

func (w *loadWatch) total() (sum float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, share := range w.sends {
		sum += share
	}
	return sum
}

func (w *loadWatch) longestOver() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.over
}

// told says what each node sends, and the most it sent.
func (w *loadWatch) told() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := fmt.Sprintf("longest above a ceiling %v;", w.over.Round(10*time.Millisecond))
	for _, node := range slices.Sorted(maps.Keys(w.sends)) {
		said += fmt.Sprintf(" %s sends %.2f of its ceiling, at most %.2f;", node, w.sends[node], w.most[node])
	}
	return said
}

// limited counts the nodes that hold pictures back.
func (w *loadWatch) limited(t *testing.T, c *devcluster.Cluster) (n int) {
	t.Helper()
	nodes, err := c.AdminNodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		if node.LimitedSeconds > 0 {
			n++
		}
	}
	return n
}
