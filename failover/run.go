package failover

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const (
	// lookEvery is how often the whole picture is compared with what is being done about it,
	// whether or not an event came. It is what makes a lost event, a full queue or a room
	// that was mapped to a boot just after its death cost a second and nothing else.
	lookEvery = time.Second
	// maxActive bounds the moves under way, which one goroutine each carries out. What is beyond
	// it is found again by a later look.
	maxActive = 65_536
	// forgetAfter is how long the pooled connection to a departed node is kept, so that
	// nothing that is still being said over it is cut off.
	forgetAfter = time.Minute
)

// departure is a node that went, until its connection is forgotten.
type departure struct {
	control string
	at      time.Time
}

// Run watches the SFU nodes, moves rooms and sweeps until ctx ends; it returns
// nil when everything it started has ended.
func (f *Failover) Run(ctx context.Context) error {
	events, unsubscribe := f.membership.Subscribe()
	defer unsubscribe()
	ctx, cancel := context.WithCancel(ctx)
	var owned sync.WaitGroup
	defer owned.Wait()
	defer cancel()
	owned.Go(func() { f.sweepUntilDone(ctx) })
	owned.Go(func() { f.attend(ctx) })
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	f.look(ctx, &owned)
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-events:
			if !ok {
				events = nil // Gossip has ended or we were too slow: the looks go on.
				continue
			}
			f.hear(event)
		case <-tick.C:
		}
		f.look(ctx, &owned)
	}
}

// hear notes a departure; everything else follows from the view.
func (f *Failover) hear(event cluster.Event) {
	switch event.Kind {
	case cluster.EventDead:
		f.depart(event.Node.Boot, cluster.DepartureDead, event.Why)
	case cluster.EventLeft:
		f.depart(event.Node.Boot, cluster.DepartureLeft, event.Why)
	case cluster.EventJoined:
	}
}

// depart logs that a known SFU boot went, once.
func (f *Failover) depart(boot pin.BootID, how cluster.Departure, why string) {
	f.mu.Lock()
	node, known := f.known[boot]
	delete(f.known, boot)
	evidence, proven := f.evidence[boot]
	delete(f.evidence, boot)
	if known {
		f.departed = append(f.departed, departure{node.Control, time.Now()})
	}
	f.mu.Unlock()
	if !known {
		return
	}
	if proven && why == whyProof { // else another cause of the same death was heard first
		why = why + ": " + evidence
	}
	if how == cluster.DepartureLeft {
		f.log.Info("node left", "node", node.ID, "boot", boot)
	} else {
		f.log.Info("node down", "node", node.ID, "boot", boot, "evidence", why)
	}
}

// look compares the picture with what is being done and starts what is missing.
func (f *Failover) look(ctx context.Context, owned *sync.WaitGroup) {
	view := f.membership.View()
	f.noticeGone(view)
	f.tellDeaths(view)
	f.moveLost(ctx, owned, view)
	f.watchLive(ctx, owned, view)
	f.weigh(view)
	f.tellReturned(ctx, owned)
	f.forgetDeparted(view)
}

// noticeGone catches the departures whose event was missed.
func (f *Failover) noticeGone(view *cluster.View) {
	f.mu.Lock()
	missed := map[pin.BootID]cluster.Departure{}
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

// deathOf returns a channel that is closed when a look finds boot gone. There is one for each
// boot that rooms were sent to, until it goes.
func (f *Failover) deathOf(boot pin.BootID) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.deaths[boot] == nil {
		f.deaths[boot] = make(chan struct{})
	}
	return f.deaths[boot]
}

// tellDeaths wakes the rooms that are held back from a target that is gone.
func (f *Failover) tellDeaths(view *cluster.View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for boot, died := range f.deaths {
		if view.Gone[boot] != "" {
			close(died)
			delete(f.deaths, boot)
		}
	}
}

// moveLost begins to move every local room that is pinned to a boot that is gone, the
// largest audience first.
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
	slices.SortFunc(lost, func(a, b LocalRoom) int {
		if a.Peers != b.Peers {
			return b.Peers - a.Peers
		}
		return strings.Compare(string(a.Room), string(b.Room))
	})
	for _, room := range lost {
		m := &move{room: room, from: room.Pin}
		to, ago, moved := f.moves.to(m.key())
		if moved && room.Pin.Fence.Less(to.Fence) && !f.gone(to.Boot) {
			if ago < lookEvery {
				continue // The edge is about to map it.
			}
			m.to, m.again = to, true
		}
		f.begin(ctx, owned, m)
	}
}

// begin carries out a move in a goroutine, unless that room is already leaving that boot.
func (f *Failover) begin(ctx context.Context, owned *sync.WaitGroup, m *move) bool {
	key := m.key()
	f.mu.Lock()
	_, running := f.active[key]
	full := len(f.active) >= maxActive
	if !running && !full {
		f.active[key] = struct{}{}
	}
	f.mu.Unlock()
	if running || full {
		return false
	}
	first := f.gate.queue(m.room.Peers)
	owned.Go(func() {
		f.carryOut(ctx, m, first)
		f.mu.Lock()
		delete(f.active, key)
		f.mu.Unlock()
	})
	return true
}

// watchLive holds one watch for each live SFU boot, and none for others.
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
		w := &watching{node: node, life: newLife(f.clock), end: end}
		f.watched[node.Boot] = w
		owned.Go(func() {
			defer end()
			f.watch(ctx, w)
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.watched[w.node.Boot] == w { // Its death was proven; should gossip keep it, it is watched anew.
				delete(f.watched, w.node.Boot)
			}
		})
	}
}

// forgetDeparted closes pooled connections to nodes that are gone for a while.
func (f *Failover) forgetDeparted(view *cluster.View) {
	used := map[string]bool{}
	for _, node := range view.Nodes {
		used[node.Control] = true
	}
	f.mu.Lock()
	var old []departure
	for len(f.departed) > 0 && time.Since(f.departed[0].at) > forgetAfter {
		old = append(old, f.departed[0])
		f.departed = f.departed[1:]
	}
	f.mu.Unlock()
	for _, d := range old {
		if !used[d.control] {
			f.nodes.Forget(d.control)
		}
	}
}

// gone reports whether a boot was seen to die or leave.
func (f *Failover) gone(boot pin.BootID) bool { return f.membership.View().Gone[boot] != "" }

// edges lists the live signaling nodes, this one always included.
func (f *Failover) edges() []ring.NodeID {
	edges := []ring.NodeID{f.config.Self}
	for id := range f.membership.View().Signaling {
		if id != f.config.Self {
			edges = append(edges, id)
		}
	}
	return edges
}
