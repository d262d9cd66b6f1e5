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
	detectEvery = 50 * time.Millisecond
	// A live node refutes it within 100 ms.
	logSuspectAfter = 5 * time.Second
	// Heartbeats come every 0.2 s.
	lateHeartbeat = 300 * time.Millisecond
	// Fewer clients have bad paths of their own.
	manyStalls = 3
)

func (f *Failover) detect(ctx context.Context) {
	var questions sync.WaitGroup
	defer questions.Wait()
	for f.nap(ctx, detectEvery) {
		f.survive("a round of detection broke", func() { f.detectOnce(ctx, &questions) })
	}
}

func (f *Failover) detectOnce(ctx context.Context, questions *sync.WaitGroup) {
	f.clock.tick(time.Now())
	for _, w := range f.watches() {
		if w.health.mayAsk(f.askAfter(w)) {
			questions.Go(func() { f.survive("a question to a node broke", func() { f.question(ctx, w) }, "node", w.node.ID) })
		}
	}
	f.reportUnreachable()
	f.evaluate(f.membership.View())
}

func (f *Failover) question(ctx context.Context, w *watching) {
	defer w.health.ask()()
	if f.askControl(ctx, w.node) == controlSame {
		w.health.heard()
	}
}

// So that no room moves between nodes that die together.
func (f *Failover) reportUnreachable() {
	f.mu.Lock()
	defer f.mu.Unlock()
	var silent []pin.BootID
	for boot, w := range f.watched {
		if w.health.unreachable(f.config.AskAfter) {
			silent = append(silent, boot)
		}
	}
	slices.Sort(silent)
	if !slices.Equal(silent, f.unreachable) {
		f.unreachable = silent
		f.membership.SetUnreachable(silent)
	}
}

func (f *Failover) askAfter(w *watching) time.Duration {
	stalled, all := f.rooms.Stalled(w.node.Boot)
	begins, ends := w.health.stall(stalled >= manyStalls && 2*stalled >= all)
	switch {
	case begins:
		silence, _ := w.health.silence()
		f.log.Warn("clients receive nothing from a node", "node", w.node.ID, "boot", w.node.Boot, "clients", stalled, "of", all, "last_heartbeat_ms", milliseconds(silence))
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

// evaluate confirms deaths that gossip reports and nothing here contradicts.
func (f *Failover) evaluate(view *cluster.View) {
	watches := f.watches()
	isolated := f.updateIsolated(watches)
	for _, w := range watches {
		node, live := view.Nodes[w.node.ID]
		suspect := live && node.Boot == w.node.Boot && node.Suspect
		log := w.health.noteSuspicion(suspect, logSuspectAfter)
		if !suspect {
			continue
		}
		silence, answer := w.health.silence()
		switch {
		case isolated && log:
			f.log.Warn("gossip takes a node for dead, but no media node is heard here: nobody is believed dead", "node", node.ID, "boot", node.Boot)
		case isolated:
		case silence >= f.config.BelieveAfter && answer >= f.config.AnswerWithin:
			f.membership.ConfirmDead(node.ID, node.Boot, fmt.Sprintf("gossip, no heartbeat for %s, no answer for %s", silence, answer))
		case log:
			f.log.Warn("gossip takes a node for dead that is heard here: it keeps its rooms", "node", node.ID, "boot", node.Boot)
		}
	}
}

// updateIsolated is true if no node was heard for AskAfter, below BelieveAfter: then none is confirmed dead. Silences
// start anew afterwards.
func (f *Failover) updateIsolated(watches []*watching) bool {
	isolated := !slices.ContainsFunc(watches, func(w *watching) bool {
		silence, _ := w.health.silence()
		return silence < f.config.AskAfter
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
