package failover

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/metrics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// The tick repairs what a lost event would have begun.
	reconcileEvery = time.Second
	// Rooms beyond this bound are found by a later reconciliation.
	maxActive = 65_536
	// Calls to the node may still be under way when it departs, so its connection is closed a minute later.
	forgetAfter = time.Minute
)

type departure struct {
	control string
	at      time.Time
}

// Run works until ctx ends, and returns when its goroutines have ended.
func (f *Failover) Run(ctx context.Context) error {
	changes, unsubscribe := f.membership.Subscribe()
	defer unsubscribe()
	ctx, cancel := context.WithCancel(ctx)
	var owned sync.WaitGroup
	defer owned.Wait()
	defer cancel()
	owned.Go(func() { f.sweepUntilDone(ctx) })
	owned.Go(func() { f.detect(ctx) })
	tick := time.NewTicker(reconcileEvery)
	defer tick.Stop()
	f.reconcile(ctx, &owned)
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-changes:
			if !ok {
				// Without events the ticks still start everything, up to a second later.
				changes = nil
				continue
			}
			f.record(event)
			if event.Kind == cluster.EventDead || event.Kind == cluster.EventLeft {
				f.catch("a departure broke its handling", func() { f.depart(event.Node.Boot, cluster.Departure(event.Kind), event.Why) }, "boot", event.Node.Boot)
			}
		case <-tick.C:
		case <-f.next:
		}
		f.reconcile(ctx, &owned)
	}
}

// record tells the cluster's events of nodes that come and go.
func (f *Failover) record(event cluster.Event) {
	fact, known := factOf(event)
	if !known {
		return
	}
	switch fact.Kind {
	case events.NodeDown:
		f.config.Metrics.Died(string(event.Node.ID), string(event.Node.Role), evidenceOf(event.Why))
	default:
		f.config.Metrics.Gone(string(event.Node.ID))
	}
	f.config.Events.Record(fact)
}

// factOf returns what the cluster's events say of a change of its nodes.
func factOf(event cluster.Event) (fact events.Event, known bool) {
	fact = events.Event{Node: event.Node.ID, Role: string(event.Node.Role), About: string(event.Node.Boot), Version: event.Node.Version}
	switch event.Kind {
	case cluster.EventJoined:
		fact.Kind = events.NodeUp
		if event.Returned() {
			fact.Kind = events.NodeBack
		}
	case cluster.EventDead:
		fact.Kind, fact.Cause = events.NodeDown, event.Why
	case cluster.EventLeft:
		fact.Kind = events.NodeLeft
	}
	return fact, fact.Kind != ""
}

// evidenceOf classifies the reason of a death for the metrics.
func evidenceOf(why string) string {
	switch {
	case strings.HasPrefix(why, whyProof):
		return metrics.EvidenceProof
	case strings.HasPrefix(why, whyGossip):
		return metrics.EvidenceGossip
	default:
		return metrics.EvidenceTold
	}
}

func (f *Failover) depart(boot pin.BootID, how cluster.Departure, why string) {
	f.mu.Lock()
	node, known := f.known[boot]
	if known {
		delete(f.known, boot)
		f.departed = append(f.departed, departure{node.Control, time.Now()})
	}
	f.mu.Unlock()
	if !known {
		return
	}
	if how == cluster.DepartureLeft {
		f.log.Info("node left", "node", node.ID, "boot", boot)
	} else {
		f.log.Warn("node down", "node", node.ID, "boot", boot, "evidence", why)
		// The signaling nodes agree on who tells what all of them see.
		f.config.Traces.Died(node.ID, boot, why, slices.Min(f.signalingNodes()) == f.config.Self)
	}
}

func (f *Failover) reconcile(ctx context.Context, owned *sync.WaitGroup) {
	view := f.membership.View()
	for _, step := range []func(){
		func() { f.noticeGone(view) },
		func() { f.moveLost(ctx, owned, view) },
		func() { f.moveDraining(ctx, owned, view) },
		func() { f.relieve(ctx, owned, view) },
		func() { f.watchLive(ctx, owned, view) },
		func() { f.evaluate(view) },
		func() { f.tellReturned(ctx, owned) },
		func() { f.forgetDeparted(view) },
	} {
		f.catch("a step of failover broke: it is tried again in a second", step)
	}
}

// noticeGone handles the departures whose events were lost.
func (f *Failover) noticeGone(view *cluster.View) {
	missed := map[pin.BootID]cluster.Departure{}
	f.mu.Lock()
	for boot := range f.known {
		if how, gone := view.Gone[boot]; gone {
			missed[boot] = how
		}
	}
	f.mu.Unlock()
	for boot, how := range missed {
		f.depart(boot, how, "seen in the view")
	}
}

// moveLost begins a re-homing for each local room whose pin names a gone boot, unless one is under way. If the room
// has moved before but its sessions have not followed, it only tells the clients again.
func (f *Failover) moveLost(ctx context.Context, owned *sync.WaitGroup, view *cluster.View) {
	var lost []LocalRoom
	wanted := map[moveKey]struct{}{}
	for boot := range view.Gone {
		for _, room := range f.rooms.PinnedTo(boot) {
			if room.Pin.Boot == boot {
				lost = append(lost, room)
				wanted[moveKey{room.Room, boot}] = struct{}{}
			}
		}
	}
	f.mu.Lock()
	f.wanted = wanted
	f.mu.Unlock()
	// The largest room goes first. All signaling nodes use this order, so that they plan alike.
	slices.SortFunc(lost, func(a, b LocalRoom) int {
		return cmp.Or(cmp.Compare(max(b.Expect.People, b.Peers), max(a.Expect.People, a.Peers)), cmp.Compare(a.Room, b.Room))
	})
	var begins []*move
	for _, room := range lost {
		if f.underWay(moveKey{room.Room, room.Pin.Boot}) {
			continue
		}
		m := &move{room: room, from: room.Pin}
		to, ago, moved := f.moves.to(m.key())
		if moved && room.Pin.Fence.Less(to.Fence) && !f.gone(to.Boot) {
			if ago < reconcileEvery {
				// The hub was told less than a second ago and is about to move the room's sessions.
				continue
			}
			m.to, m.again = to, true
		}
		begins = append(begins, m)
	}
	// All rooms are planned before the first of them moves, so that they see each other's targets.
	for _, m := range begins {
		if m.to.IsZero() {
			f.rehomer.Plan(m.room.Room, m.from, m.room.Expect)
		}
	}
	for _, m := range begins {
		f.begin(ctx, owned, m)
	}
}

func (f *Failover) underWay(key moveKey) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, running := f.active[key]
	return running
}

func (f *Failover) begin(ctx context.Context, owned *sync.WaitGroup, m *move) {
	key := m.key()
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, running := f.active[key]; running || len(f.active) >= maxActive {
		return
	}
	f.active[key] = struct{}{}
	var slot *waiter
	if m.to.IsZero() {
		m.trace = f.config.Traces.Rehoming(key.room, m.from.Boot)
		slot = f.storeSlots.queue(0, m.room.Peers)
	}
	owned.Go(func() {
		f.catch("telling of a re-homing broke", func() { f.announce(m) })
		f.catch("a room's re-homing broke: it begins anew", func() { f.carryOut(m.trace.In(ctx), m, slot) }, "room", key.room)
		m.trace.Set("to", string(m.to.Node)).Count("clients", m.room.Peers).End(nil)
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.active, key)
	})
}

// watchLive watches every live media node, and ends the watches of nodes that are gone or have another address.
func (f *Failover) watchLive(ctx context.Context, owned *sync.WaitGroup, view *cluster.View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for boot, w := range f.watched {
		node, live := view.Nodes[w.node.ID]
		if !live || node.Boot != boot || node.Control != w.node.Control || node.Media != w.node.Media {
			w.end()
			delete(f.watched, boot)
		}
	}
	for _, node := range view.Nodes {
		f.known[node.Boot] = node
		if f.watched[node.Boot] != nil {
			continue
		}
		ctx, end := context.WithCancel(ctx)
		w := &watching{node: node, health: newPeerHealth(f.clock), end: end}
		f.watched[node.Boot] = w
		owned.Go(func() {
			defer end()
			f.catch("the watch of a node broke: it begins anew", func() { f.watch(ctx, w) }, "node", w.node.ID)
			f.mu.Lock()
			defer f.mu.Unlock()
			// The watch ended although the node was not replaced. The next reconciliation begins it anew if the node
			// lives.
			if f.watched[w.node.Boot] == w {
				delete(f.watched, w.node.Boot)
			}
		})
	}
}

func (f *Failover) forgetDeparted(view *cluster.View) {
	used := map[string]bool{}
	for _, node := range view.Nodes {
		used[node.Control] = true
	}
	f.mu.Lock()
	due := 0
	for due < len(f.departed) && time.Since(f.departed[due].at) > forgetAfter {
		due++
	}
	old := f.departed[:due]
	f.departed = f.departed[due:]
	f.mu.Unlock()
	for _, d := range old {
		if !used[d.control] {
			f.nodes.Forget(d.control)
		}
	}
}

func (f *Failover) gone(boot pin.BootID) bool { return f.membership.View().Gone[boot] != "" }

func (f *Failover) signalingNodes() []ring.NodeID {
	nodes := []ring.NodeID{f.config.Self}
	for id := range f.membership.View().Signaling {
		if id != f.config.Self {
			nodes = append(nodes, id)
		}
	}
	return nodes
}
