package failover

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/pin"
)

const (
	// detectEvery is the interval of the detector loop.
	detectEvery = 50 * time.Millisecond
	// logDoubtAfter: a live node normally refutes gossip within 100 ms.
	logDoubtAfter = 5 * time.Second
	// lateHeartbeat: nodes send one every 0.2 s.
	lateHeartbeat = 300 * time.Millisecond
	// manyStalls stalled clients may have a bad node; fewer may have a bad path of their own.
	manyStalls = 3
)

// detect is the detector loop: it asks silent nodes and evaluates gossip until ctx ends.
func (f *Failover) detect(ctx context.Context) {
	var questions sync.WaitGroup
	defer questions.Wait()
	for f.nap(ctx, detectEvery) {
		f.clock.tick(time.Now())
		for _, w := range f.watches() {
			if w.health.mayAsk(f.askAfter(w)) {
				done := w.health.ask()
				questions.Go(func() {
					defer done()
					if f.askControl(ctx, w.node) == ControlSame {
						w.health.heard()
					}
				})
			}
		}
		f.reportSilent()
		f.evaluate(f.membership.View())
	}
}

// reportSilent tells the membership which boots are not heard: they get no rooms. When two nodes die
// at once, signaling nodes learn of the deaths in different order; one would move rooms to a node
// that another knows to be dead.
func (f *Failover) reportSilent() {
	f.mu.Lock()
	defer f.mu.Unlock()
	var silent []pin.BootID
	for boot, w := range f.watched {
		if w.health.unreachable(f.config.AskAfter) {
			silent = append(silent, boot)
		}
	}
	slices.Sort(silent)
	if !slices.Equal(silent, f.silent) {
		f.silent = silent
		f.membership.SetSilent(silent)
	}
}

// askAfter is how long a boot may be silent before it is asked. Stalled clients can only shorten it.
func (f *Failover) askAfter(w *watching) time.Duration {
	stalled, all := f.rooms.Stalled(w.node.Boot)
	begins, ends := w.health.stall(stalled >= manyStalls && 2*stalled >= all)
	switch {
	case begins:
		beats, _ := w.health.silence()
		f.log.Warn("clients receive nothing from a node", "node", w.node.ID, "boot", w.node.Boot, "clients", stalled, "of", all, "last_beat_ms", milliseconds(beats))
	case ends:
		f.log.Info("clients receive media from the node again, or left", "node", w.node.ID, "boot", w.node.Boot)
	}
	if stalled > 0 {
		return min(f.config.AskAfter, lateHeartbeat)
	}
	return f.config.AskAfter
}

func (f *Failover) watches() []*watching {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.watched))
}

// evaluate confirms the deaths that gossip reports and no heartbeat or answer contradicts. A doubted
// node that is heard keeps its rooms and gets no new ones. While this process is isolated it confirms
// none: probably it is cut off, and it knows no live node to move rooms to.
func (f *Failover) evaluate(view *cluster.View) {
	watches := f.watches()
	isolated := f.updateIsolated(watches)
	for _, w := range watches {
		node, live := view.Nodes[w.node.ID]
		doubted := live && node.Boot == w.node.Boot && node.Doubted
		log := w.health.doubt(doubted, logDoubtAfter)
		if !doubted {
			continue
		}
		beats, answer := w.health.silence()
		switch {
		case isolated && log:
			f.log.Warn("gossip takes a node for dead, but no media node is heard here: nobody is believed dead", "node", node.ID, "boot", node.Boot)
		case isolated:
		case beats >= f.config.BelieveAfter && answer >= f.config.AnswerWithin:
			f.membership.ConfirmDead(node.ID, node.Boot, fmt.Sprintf("gossip, no beat for %s, no answer for %s", beats, answer))
		case log:
			f.log.Warn("gossip takes a node for dead that beats here: it keeps its rooms", "node", node.ID, "boot", node.Boot)
		}
	}
}

// updateIsolated reports whether no node has been heard for AskAfter. That is below BelieveAfter, so
// that of nodes that are cut off together none is confirmed dead. Afterwards all silences start anew:
// some nodes may need longer to connect.
func (f *Failover) updateIsolated(watches []*watching) bool {
	isolated := !slices.ContainsFunc(watches, func(w *watching) bool {
		beats, _ := w.health.silence()
		return beats < f.config.AskAfter
	})
	f.mu.Lock()
	ended := f.isolated && !isolated
	f.isolated = isolated
	f.mu.Unlock()
	if ended {
		for _, w := range watches {
			w.health.heard()
		}
	}
	return isolated
}
