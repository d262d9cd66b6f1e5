package failover

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/pin"
)

const (
	// attendEvery is how often the awake clock ticks and silence is looked at. It is what a
	// judgement may come late.
	attendEvery = 50 * time.Millisecond
	// oddDoubt is how long gossip may be wrong before somebody should look why: a node that lives
	// takes gossip's word back within some 100 ms.
	oddDoubt = 5 * time.Second
	// lateBeat is how long after the last beat the next one is late: nodes beat every 0.2 s.
	lateBeat = 300 * time.Millisecond
	// manyStalls: fewer clients without media have a bad path of their own; half of those on a node, and at
	// least so many, have a bad node.
	manyStalls = 3
)

// attend ticks, asks nodes whose beats have stopped, and weighs what gossip says against
// what this edge has heard, until ctx ends.
func (f *Failover) attend(ctx context.Context) {
	var questions sync.WaitGroup
	defer questions.Wait()
	for f.nap(ctx, attendEvery) {
		f.clock.tick(time.Now())
		for _, w := range f.watches() {
			if w.life.quiet(f.patience(w)) {
				answered := w.life.ask()
				questions.Go(func() {
					defer answered()
					f.question(ctx, w)
				})
			}
		}
		f.sayWhoIsSilent()
		f.weigh(f.membership.View())
	}
}

// sayWhoIsSilent tells the membership which boots are not heard now, so that no room is sent to one of them: it may well be
// dead, and this edge could not reach it if it were not. When two nodes die at once, each edge proves one of the deaths first; without
// this the one moves rooms to the node that the other knows to be dead, and back.
func (f *Failover) sayWhoIsSilent() {
	f.mu.Lock()
	defer f.mu.Unlock()
	var silent []pin.BootID
	for boot, w := range f.watched {
		if w.life.unheard(f.config.AskAfter) {
			silent = append(silent, boot)
		}
	}
	slices.Sort(silent)
	if !slices.Equal(silent, f.silent) {
		f.silent = silent
		f.membership.SetSilent(silent)
	}
}

// patience is how long a boot may be silent before it is asked. When clients say that nothing arrives from
// it, it is asked as soon as a beat is late. That is all a client can bring about: what a boot
// is taken for is decided by its beats and answers, and by gossip.
func (f *Failover) patience(w *watching) time.Duration {
	stalled, all := f.rooms.Stalled(w.node.Boot)
	many := stalled >= manyStalls && 2*stalled >= all
	begins, ends := w.life.stalls(many)
	switch {
	case begins:
		beats, _ := w.life.silence()
		f.log.Warn("clients receive nothing from a node", "node", w.node.ID, "boot", w.node.Boot, "clients", stalled, "of", all, "last_beat_ms", milliseconds(beats))
	case ends:
		f.log.Info("clients receive media from the node again, or left", "node", w.node.ID, "boot", w.node.Boot)
	}
	if stalled > 0 {
		return min(f.config.AskAfter, lateBeat)
	}
	return f.config.AskAfter
}

// question asks the process behind the control address who it is. Only an answer counts.
func (f *Failover) question(ctx context.Context, w *watching) {
	hello, err := f.nodes.HelloAt(ctx, w.node.Control)
	if err == nil && controlOf(w.node, hello) == ControlSame {
		w.life.sign()
	}
}

// watches are those of the live boots.
func (f *Failover) watches() []*watching {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := make([]*watching, 0, len(f.watched))
	for _, w := range f.watched {
		all = append(all, w)
	}
	return all
}

// weigh confirms the deaths that gossip believes in and our own evidence does not contradict. A node that
// beats or answers stays: it holds its rooms, and takes no new ones, for it is off the ring. While no
// node at all is heard, nobody is believed dead: more likely it is this edge that is cut off, and
// there is no node to move to of which it knows that it lives.
func (f *Failover) weigh(view *cluster.View) {
	watches := f.watches()
	deaf := f.listening(watches)
	for _, w := range watches {
		node, live := view.Nodes[w.node.ID]
		doubted := live && node.Boot == w.node.Boot && node.Doubted
		say := w.life.doubtedFor(doubted, oddDoubt)
		if !doubted {
			continue
		}
		beats, answer := w.life.silence()
		switch {
		case deaf && say:
			f.log.Warn("gossip takes a node for dead, but no media node is heard here: nobody is believed dead", "node", node.ID, "boot", node.Boot)
		case deaf:
		case beats >= f.config.BelieveAfter && answer >= f.config.AnswerWithin:
			f.membership.ConfirmDead(node.ID, node.Boot, fmt.Sprintf("gossip, no beat for %s, no answer for %s", beats, answer))
		case say:
			f.log.Warn("gossip takes a node for dead that beats here: it keeps its rooms", "node", node.ID, "boot", node.Boot)
		}
	}
}

// listening says whether this edge is deaf. When it hears somebody again, the silence of all others is counted
// from then on: they may only need longer to connect.
func (f *Failover) listening(watches []*watching) (deaf bool) {
	deaf = f.hearsNobody(watches)
	f.mu.Lock()
	again := f.deaf && !deaf
	f.deaf = deaf
	f.mu.Unlock()
	if again {
		for _, w := range watches {
			w.life.sign()
		}
	}
	return deaf
}

// hearsNobody says that none of the nodes was heard lately. At the instant that one has been silent
// for BelieveAfter, the last beat of another that is cut off with it may be a beat's time younger, which
// is still longer ago than AskAfter.
func (f *Failover) hearsNobody(watches []*watching) bool {
	for _, w := range watches {
		if !w.life.silentFor(f.config.AskAfter) {
			return false
		}
	}
	return true
}
