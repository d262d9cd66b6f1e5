package failover

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// world is a cluster on paper: SFU processes, a store, and signaling nodes with a Failover each. Its time
// is that of a synctest bubble.
type world struct {
	t       *testing.T
	started time.Time

	mu             sync.Mutex // guards the fields below
	sfus           map[string]*sfuProcess
	signalingNodes map[string]*signalingNode
	store          *paperStore
	entries        []entry
	boots          uint64
	mine           string // the next log line of this text panics
}

// entry is one line of a log.
type entry struct {
	at              time.Duration
	signaling, room string
	text            string
}

// sfuProcess is one SFU node by its stable name.
type sfuProcess struct {
	node      cluster.Node
	running   bool
	frozen    bool
	mute      bool          // its streams carry nothing
	noAnswer  bool          // new connections are silent
	noControl bool          // new connections are refused, as by a firewall
	noMedia   bool          // datagrams are refused
	full      bool          // it has no headroom
	broken    chan struct{} // closed to break every stream
	holds     map[ring.RoomID]pin.Fence
}

// signaling node is one signaling node: its gossip, its sockets, its Failover.
type signalingNode struct {
	w           *world
	name        string
	failover    *Failover
	stop        func()
	events      chan cluster.Event
	view        *cluster.View
	rooms       map[ring.RoomID]LocalRoom
	settling    map[ring.RoomID]time.Time
	stays       map[ring.RoomID]string
	stalls      map[pin.BootID]int // clients that say that nothing arrives
	missesMoves bool               // Moved is lost, as when the process hangs just before
	limited     map[string]bool    // the nodes whose hosts do not refuse its datagrams any more
	stopped     time.Time          // until when the process does not run
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, started: time.Now(), sfus: map[string]*sfuProcess{}, signalingNodes: map[string]*signalingNode{}}
	w.store = &paperStore{w: w, pins: map[ring.RoomID]pin.Pin{}}
	return w
}

// startSFU starts a process, which gossip announces to every signaling node.
// restart replaces a process. Its stream breaks when gossip has been heard, or the log would be now this, now that.
func (w *world) restart(name string) {
	old := w.sfus[name]
	w.change(func() { old.running = false })
	w.startSFU(name)
	synctest.Wait()
	close(old.broken)
}

// startSFU starts an SFU process.
func (w *world) startSFU(name string, more ...string) {
	w.mu.Lock()
	w.boots++
	boot := pin.BootID(fmt.Sprintf("%013d-%08x", time.Now().UnixMilli(), w.boots))
	p := &sfuProcess{running: true, broken: make(chan struct{}), holds: map[ring.RoomID]pin.Fence{}, node: cluster.Node{
		ID: ring.NodeID(name), Boot: boot, Role: cluster.RoleSFU, Control: name + ":1", Media: name + ":2", Capabilities: strings.Join(more, ","),
	}}
	w.sfus[name] = p
	w.mu.Unlock()
	w.gossipAll(func(e *signalingNode) { e.join(p.node) })
}

// startSignaling starts a signaling node with a Failover whose log is part of the output.
func (w *world) startSignaling(name string) {
	e := &signalingNode{w: w, name: name, events: make(chan cluster.Event, 1000), rooms: map[ring.RoomID]LocalRoom{}, settling: map[ring.RoomID]time.Time{}, stays: map[ring.RoomID]string{}, stalls: map[pin.BootID]int{}, limited: map[string]bool{}}
	w.mu.Lock()
	e.view = &cluster.View{Nodes: map[ring.NodeID]cluster.Node{}, Signaling: map[ring.NodeID]cluster.Node{}, Gone: map[pin.BootID]cluster.Departure{}, Settled: true}
	for _, p := range w.sfus {
		e.view.Nodes[p.node.ID] = p.node
	}
	for _, other := range w.signalingNodes {
		e.view.Signaling[ring.NodeID(other.name)] = other.member()
	}
	w.signalingNodes[name] = e
	w.mu.Unlock()
	w.gossipAll(func(other *signalingNode) { other.join(e.member()) })

	config := DefaultConfig()
	config.Self = ring.NodeID(name)
	config.Concurrent = 1 // so that the order is visible
	f := New(config, e, e, &paperRehomer{paperStore: w.store, e: e, planned: map[moveKey]int{}}, w.store, &paperNodes{w, e}, slog.New(&recorder{e: e}))
	f.nap = func(ctx context.Context, pause time.Duration) bool { return backoff.Sleep(ctx, pause) && e.goOn(ctx) }
	f.spread = func(pause time.Duration) time.Duration { return pause }
	f.askMedia = func(_ context.Context, addr string) mediaAnswer { return e.media(addr) }
	e.failover = f
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f.Run(ctx); err != nil {
			w.t.Errorf("%s: Run = %v", name, err)
		}
	}()
	e.stop = sync.OnceFunc(func() { cancel(); <-done })
}

func (w *world) stop() {
	for _, e := range w.signalingNodes {
		e.stop()
	}
}

// gossipAll tells every signaling node something.
func (w *world) gossipAll(tell func(*signalingNode)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(w.signalingNodes)) {
		tell(w.signalingNodes[name])
	}
}

func (e *signalingNode) media(addr string) mediaAnswer {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	name := strings.TrimSuffix(addr, ":2")
	if p := e.w.sfus[name]; !e.limited[name] && (p == nil || !p.running || p.noMedia) {
		return mediaRefused
	}
	return mediaSilent
}

// A signaling node is its Failover's Membership. Its methods that begin with a lower case letter
// need the world's mu.
var _ Membership = (*signalingNode)(nil)

func (e *signalingNode) member() cluster.Node {
	return cluster.Node{ID: ring.NodeID(e.name), Boot: pin.BootID("boot of " + e.name), Role: cluster.RoleSignaling}
}

func (e *signalingNode) change(change func(*cluster.View), events ...cluster.Event) {
	next := &cluster.View{Version: e.view.Version + 1, Nodes: maps.Clone(e.view.Nodes), Signaling: maps.Clone(e.view.Signaling), Gone: maps.Clone(e.view.Gone), Settled: true}
	change(next)
	e.view = next
	for _, event := range events {
		e.events <- event
	}
}

func (e *signalingNode) join(node cluster.Node) {
	if node.Role == cluster.RoleSignaling {
		e.change(func(v *cluster.View) { v.Signaling[node.ID] = node })
		return
	}
	if e.view.Nodes[node.ID].Boot == node.Boot {
		e.suspect(node, false)
		return
	}
	if old, live := e.view.Nodes[node.ID]; live {
		e.remove(old, cluster.DepartureDead, "newer boot")
	}
	e.change(func(v *cluster.View) {
		v.Nodes[node.ID] = node
		delete(v.Gone, node.Boot)
	}, cluster.Event{Kind: cluster.EventJoined, Node: node})
}

func (e *signalingNode) remove(node cluster.Node, how cluster.Departure, why string) {
	if node.Role == cluster.RoleSignaling {
		e.change(func(v *cluster.View) { delete(v.Signaling, node.ID) }, cluster.Event{Kind: cluster.EventDead, Node: node, Why: why})
		return
	}
	if e.view.Nodes[node.ID].Boot != node.Boot {
		return
	}
	kind := cluster.EventDead
	if how == cluster.DepartureLeft {
		kind = cluster.EventLeft
	}
	e.change(func(v *cluster.View) {
		delete(v.Nodes, node.ID)
		v.Gone[node.Boot] = how
	}, cluster.Event{Kind: kind, Node: node, Why: why})
}

// suspicion is gossip's word that a node is dead, and trust that it lives after all.
func (e *signalingNode) suspect(node cluster.Node, suspect bool) {
	current := e.view.Nodes[node.ID]
	if current.Boot != node.Boot || current.Suspect == suspect {
		return
	}
	current.Suspect = suspect
	// The event says nothing. It has a look follow in this instant, which else would race with a tick.
	e.change(func(v *cluster.View) { v.Nodes[node.ID] = current }, cluster.Event{})
}

// goOn waits while the process is stopped.
func (e *signalingNode) goOn(ctx context.Context) bool {
	for {
		e.w.mu.Lock()
		left := time.Until(e.stopped)
		e.w.mu.Unlock()
		if left <= 0 {
			return ctx.Err() == nil
		}
		if !backoff.Sleep(ctx, left) {
			return false
		}
	}
}

func (e *signalingNode) Subscribe() (<-chan cluster.Event, func()) { return e.events, func() {} }

func (e *signalingNode) View() *cluster.View {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	return e.view
}

func (e *signalingNode) SetUnreachable(boots []pin.BootID) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	next := *e.view
	next.Nodes = maps.Clone(e.view.Nodes)
	for id, node := range next.Nodes {
		node.Unreachable = slices.Contains(boots, node.Boot)
		next.Nodes[id] = node
	}
	e.view = &next
}

func (e *signalingNode) ConfirmDead(id ring.NodeID, boot pin.BootID, why string) {
	if e.View().Nodes[id].Suspect {
		e.ReportDead(id, boot, why)
	}
}

func (e *signalingNode) ReportDead(id ring.NodeID, boot pin.BootID, why string) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	e.remove(cluster.Node{ID: id, Boot: boot}, cluster.DepartureDead, why)
}

// settlesIn is how long the people of a room take for a live move.
const settlesIn = 700 * time.Millisecond

// A signaling node is also its Failover's Rooms.
var _ Rooms = (*signalingNode)(nil)

func (e *signalingNode) PinnedTo(boot pin.BootID) []LocalRoom {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	var pinned []LocalRoom
	for _, room := range e.rooms {
		if room.Pin.Boot == boot {
			pinned = append(pinned, room)
		}
	}
	return pinned
}

func (e *signalingNode) Stalled(boot pin.BootID) (stalled, all int) {
	for _, room := range e.PinnedTo(boot) {
		all += room.Peers
	}
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	return e.stalls[boot], all
}

func (e *signalingNode) Settled(room ring.RoomID, fence pin.Fence) bool {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	return time.Since(e.settling[room]) >= settlesIn
}

func (e *signalingNode) Stays(room ring.RoomID, why string) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	if local, ok := e.rooms[room]; ok && (why == "") != (e.stays[room] == "") {
		e.w.entries = append(e.w.entries, entry{time.Since(e.w.started), e.name, string(local.Room), fmt.Sprintf("(told) %s stays: %q", room, why)})
	}
	e.stays[room] = why
}

func (e *signalingNode) Delayed(room ring.RoomID, why error) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	e.w.entries = append(e.w.entries, entry{time.Since(e.w.started), e.name, string(room), fmt.Sprintf("(told) %s is delayed: %q", room, why)})
}

func (e *signalingNode) MovedLive(ctx context.Context, room ring.RoomID, to pin.Pin) {
	e.Moved(ctx, room, to)
}

func (e *signalingNode) Moved(_ context.Context, room ring.RoomID, to pin.Pin) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	local, ok := e.rooms[room]
	if e.missesMoves || !ok || !local.Pin.Fence.Less(to.Fence) {
		return
	}
	local.Pin, local.WholeAt = to, ""
	e.rooms[room], e.settling[room] = local, time.Now()
	if p := e.w.sfus[string(to.Node)]; p != nil && p.running && p.node.Boot == to.Boot {
		p.holds[room] = to.Fence // The clients come and open it.
	}
}

// recorder is a slog.Handler that writes what a scenario shows.
type recorder struct {
	e *signalingNode
}

func (r *recorder) Enabled(context.Context, slog.Level) bool { return true }
func (r *recorder) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *recorder) WithGroup(string) slog.Handler            { return r }

func (r *recorder) Handle(_ context.Context, record slog.Record) error {
	text, room := record.Message, ""
	record.Attrs(func(a slog.Attr) bool {
		switch value := a.Value.String(); a.Key {
		case "boot", "rooms", "stack": // Every run has other boots, and another order of what happens in one instant.
		case "room":
			room = value
			fallthrough
		default:
			text += " " + a.Key + "=" + value
		}
		return true
	})
	r.e.w.mu.Lock()
	defer r.e.w.mu.Unlock()
	if r.e.w.mine == record.Message {
		r.e.w.mine = ""
		panic("of a test")
	}
	r.e.w.entries = append(r.e.w.entries, entry{time.Since(r.e.w.started), r.e.name, room, text})
	return nil
}

// takeEntries returns what was logged since the last call. Lines of one instant come from goroutines
// in no order, so they are sorted by signaling node and room, those of no room by what they say; the lines of one room keep theirs.
func (w *world) takeEntries() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.SortStableFunc(w.entries, func(a, b entry) int {
		if by := cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.signaling, b.signaling), cmp.Compare(a.room, b.room)); by != 0 || a.room != "" {
			return by
		}
		return cmp.Compare(a.text, b.text)
	})
	var out strings.Builder
	for _, e := range w.entries {
		fmt.Fprintf(&out, "%6dms %s: %s\n", e.at.Milliseconds(), e.signaling, e.text)
	}
	w.entries = nil
	return out.String()
}
