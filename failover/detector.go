package failover

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/failover/suspicion"
	"github.com/holdfast-rtc/holdfast/internal/metrics"
	"github.com/holdfast-rtc/holdfast/pin"
)

const (
	detectEvery = 50 * time.Millisecond
	// A live node refutes a suspicion within 100 ms, so one that lasts this long deserves a line in the log.
	logSuspectAfter = 5 * time.Second
	// A heartbeat comes every 200 ms. When a client receives nothing, the node is asked after one late heartbeat.
	lateHeartbeat = 300 * time.Millisecond
	// With fewer stalled clients than this, their own network paths are the likelier cause.
	manyStalls = 3
)

func (f *Failover) detect(ctx context.Context) {
	var begun sync.WaitGroup
	defer begun.Wait()
	for f.nap(ctx, detectEvery) {
		f.catch("a round of detection broke", func() { f.detectOnce(ctx, &begun) })
	}
}

// detectOnce begins questions and moves.
func (f *Failover) detectOnce(ctx context.Context, begun *sync.WaitGroup) {
	f.clock.tick(time.Now())
	for _, w := range f.watches() {
		if w.health.mayAsk(f.askAfter(w)) {
			begun.Go(func() { f.catch("a question to a node broke", func() { f.question(ctx, w) }, "node", w.node.ID) })
		}
	}
	f.reportUnreachable()
	view := f.membership.View()
	f.evaluate(view)
	f.suspect(ctx, begun, view)
}

func (f *Failover) question(ctx context.Context, w *watching) {
	defer w.health.ask()()
	if f.askControl(ctx, w.node) == controlSame {
		w.health.heard()
	}
}

// reportUnreachable takes the silent nodes off the ring before their death is proven, so that rooms of one dead node
// do not move to another that died with it.
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
	switch {
	case w.node.Can(control.CapabilityStandby):
		return min(f.config.AskAfter, suspicion.DefaultConfig().Late)
	case stalled > 0:
		return min(f.config.AskAfter, lateHeartbeat)
	default:
		return f.config.AskAfter
	}
}

func (f *Failover) watches() []*watching {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.watched))
}

// evaluate confirms the deaths that gossip suspects, if this process has no heartbeat and no answer of the node. It
// confirms none while this process hears no media node at all: then its own network is the likelier cause.
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
		// An isolated node confirms nothing, whatever gossip says.
		case isolated:
		case silence >= f.config.BelieveAfter && answer >= f.config.AnswerWithin:
			why := whyGossip + fmt.Sprintf("no heartbeat for %s, no answer for %s", silence.Round(10*time.Millisecond), answer.Round(10*time.Millisecond))
			f.config.Metrics.Detected(metrics.EvidenceGossip, silence)
			f.config.Traces.Evidence(node.ID, node.Boot, "silence", why, time.Now().Add(-silence))
			f.membership.ConfirmDead(node.ID, node.Boot, why)
		case log:
			f.log.Warn("gossip takes a node for dead that is heard here: it keeps its rooms", "node", node.ID, "boot", node.Boot)
		}
	}
}

func (f *Failover) isIsolated() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.isolated
}

// updateIsolated reports whether every node has been silent for AskAfter. AskAfter is shorter than BelieveAfter, so
// isolation is noticed before a death could be confirmed. When the isolation ends, all silences are measured anew.
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
