package signaling

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/rest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	generous   = 60 * time.Second
	clusterKey = "0123456789abcdef0123456789abcdef-test"
	apiKey     = "APItest"
	apiSecret  = "fedcba9876543210fedcba9876543210"
	firstEpoch = 1769000000000
)

// rig is a cluster in one process: real signaling nodes, real WebSockets and real gRPC over
// TLS, in front of media nodes and a placer that only pretend.
type rig struct {
	t      *testing.T
	key    control.ClusterKey
	keys   *access.Keyring
	placer *fakePlacer
	views  *fakeViews
	log    *slog.Logger
	events rest.Events
	// users are those of all nodes; nobody is known unless a test says so.
	users users
	// prepare changes a signaling node before it runs.
	prepare func(*Server)
}

func newRig(t *testing.T) *rig {
	t.Helper()
	key, err := control.ParseClusterKey(clusterKey)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := access.ParseKeyring(apiKey + ":" + apiSecret)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
	return &rig{
		t: t, key: key, keys: keys, log: log,
		placer: &fakePlacer{pins: map[ring.RoomID]pin.Pin{}, notes: map[string]string{}}, views: newFakeViews(), users: nobody{},
	}
}

// serve runs something until the test ends and waits for its end.
func (r *rig) serve(run func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			r.t.Errorf("served until %v", err)
		}
	})
	r.t.Cleanup(stop)
	return stop
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return lis
}

// signalingNode is one.
type signalingNode struct {
	*Server
	rig  *rig
	addr string
	stop func()
}

func (r *rig) signalingNode(change func(*Config)) *signalingNode {
	return r.signalingNodeWith(nil, change)
}

func (r *rig) signalingNodeWith(killer *fakeKiller, change func(*Config)) *signalingNode {
	r.t.Helper()
	config := DefaultConfig("signaling-1")
	config.RetryBase, config.RetryMax = 2*time.Millisecond, 20*time.Millisecond
	// A busy machine may take long over the TLS of a first attach.
	config.JoinBudget, config.AttachPatience = generous, generous/2
	if change != nil {
		change(&config)
	}
	pool := control.NewPool(r.key, control.DefaultConfig())
	r.t.Cleanup(pool.Close)
	parts := Parts{
		Placer: r.placer, Pool: pool, Views: r.views, Store: r.placer, Keys: r.keys,
		Static:   fstest.MapFS{"index.html": {Data: []byte("<!doctype html>hello")}},
		Presence: presence.New(quickly(), r.users, r.users, panics.New(), r.log), Users: r.users, Rosters: &fakeRosters{}, Doors: r.placer, Events: r.events,
	}
	r.serve(parts.Presence.Run)
	if killer != nil {
		parts.Killer = killer
	}
	server, err := New(config, parts, r.log)
	if err != nil {
		r.t.Fatal(err)
	}
	server.around = func(handler http.Handler) http.Handler { return described(r.t, handler) }
	if r.prepare != nil {
		r.prepare(server)
	}
	lis := listen(r.t)
	stop := r.serve(func(ctx context.Context) error { return server.Run(ctx, lis) })
	return &signalingNode{Server: server, rig: r, addr: lis.Addr().String(), stop: stop}
}

// lobby is a room of that name on a media node, and a signaling node.
func lobby(t *testing.T) (*rig, *node, *signalingNode) {
	t.Helper()
	return lobbyWith(t, nil)
}

func lobbyWith(t *testing.T, change func(*Config)) (*rig, *node, *signalingNode) {
	t.Helper()
	r := newRig(t)
	n := r.node("sfu-1")
	r.placer.set("lobby", n.pin(firstEpoch))
	return r, n, r.signalingNode(change)
}

// lobbyAndSpare has another media node.
func lobbyAndSpare(t *testing.T) (r *rig, one, two *node, e *signalingNode) {
	t.Helper()
	r, one, e = lobby(t)
	return r, one, r.node("sfu-2"), e
}

// fakePlacer is a store of pins that does what the test says.
type fakePlacer struct {
	mu    sync.Mutex // guards the fields below
	pins  map[ring.RoomID]pin.Pin
	again func(refused pin.Pin) (pin.Pin, error)
	fail  error
	// noteFail is a store that answers about pins only.
	noteFail error
	ahead    time.Duration // of the store's clock
	seen     []pin.Fence
	calls    []string
	// expects is what rooms were placed again as.
	expects []headroom.Room
	opens   int
	notes   map[string]string // of all rooms, by room and name
	reads   int               // of pins
	hangs   bool              // pins are not read before the reader gives up
	deadly  ring.RoomID       // to ask about it panics
	doors   doors             // nil: everybody is let in
	hasDoor bool              // who is placed hears of a door
}

// mine panics where the room is the deadly one.
func (p *fakePlacer) mine(room ring.RoomID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deadly != "" && room == p.deadly {
		panic("of a test")
	}
}

func (p *fakePlacer) bury(room ring.RoomID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deadly = room
}

func (p *fakePlacer) Now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Add(p.ahead)
}

// setClock has the store's clock so far ahead of ours.
func (p *fakePlacer) setClock(ahead time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ahead = ahead
}

func (p *fakePlacer) Note(_ context.Context, room ring.RoomID, notes map[string]string, life time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.noteFail != nil || p.fail != nil {
		return errors.Join(p.noteFail, p.fail)
	}
	for name, text := range notes {
		if life > 0 {
			p.notes[string(room)+"/"+name] = text
		}
	}
	return nil
}

func (p *fakePlacer) Notes(_ context.Context, room ring.RoomID, names ...string) ([]string, error) {
	p.mine(room)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.noteFail != nil || p.fail != nil {
		return nil, errors.Join(p.noteFail, p.fail)
	}
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = p.notes[string(room)+"/"+name]
	}
	return texts, nil
}

// noted reports whether some note has this text.
func (p *fakePlacer) noted(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(slices.Collect(maps.Values(p.notes)), text)
}

func (p *fakePlacer) hang() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hangs = true
}

func (p *fakePlacer) set(room ring.RoomID, to pin.Pin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pins[room] = to
}

func (p *fakePlacer) Place(_ context.Context, room ring.RoomID, _ headroom.Room) (pin.Pin, error) {
	if !strings.HasPrefix(string(room), "placed-") {
		p.mine(room)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, "place")
	if p.fail != nil {
		return pin.Pin{}, p.fail
	}
	if p.hasDoor {
		return p.pins[room], waitlist.ErrDoor
	}
	return p.pins[room], nil
}

func (p *fakePlacer) PlaceAgain(_ context.Context, room ring.RoomID, refused pin.Pin, expect headroom.Room) (pin.Pin, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, "place again")
	p.expects = append(p.expects, expect)
	if p.pins[room].Fence == refused.Fence {
		next, err := p.again(refused)
		if err != nil {
			return pin.Pin{}, err
		}
		p.pins[room] = next
	}
	return p.pins[room], nil
}

// Move goes to the other node's pin that the test has set in again.
func (p *fakePlacer) Move(_ context.Context, room ring.RoomID, from pin.Pin, to ring.NodeID, expect headroom.Room, _ string) (pin.Pin, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, "move to "+string(to))
	p.expects = append(p.expects, expect)
	if p.fail != nil {
		return pin.Pin{}, p.fail
	}
	next, err := p.again(from)
	if err == nil {
		p.pins[room] = next
	}
	return next, err
}

func (p *fakePlacer) Observe(_ ring.RoomID, f pin.Fence) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, f)
}

func (p *fakePlacer) Opened(ring.RoomID, ring.NodeID, uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.opens++
}

func (p *fakePlacer) Explain(_ context.Context, room ring.RoomID) (orchestrator.Explanation, error) {
	p.mine(room)
	return orchestrator.Explanation{Room: room, Owner: "sfu-1"}, nil
}

func (p *fakePlacer) Ping(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fail
}

func (p *fakePlacer) Pins(ctx context.Context, rooms []ring.RoomID, visit func(pin.Holding) error) error {
	p.mu.Lock()
	p.reads++
	fail, hangs := p.fail, p.hangs
	p.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	if fail != nil {
		return fail
	}
	for _, room := range rooms {
		p.mu.Lock()
		stands, ok := p.pins[room]
		p.mu.Unlock()
		if ok {
			if err := visit(pin.Holding{Room: room, Pin: stands}); err != nil {
				return err
			}
		}
	}
	return nil
}

// fakeViews is gossip.
type fakeViews struct {
	mu   sync.Mutex // guards view
	view *cluster.View
}

func newFakeViews() *fakeViews {
	return &fakeViews{view: &cluster.View{Nodes: map[ring.NodeID]cluster.Node{}, Signaling: map[ring.NodeID]cluster.Node{}, Settled: true}}
}

func (v *fakeViews) View() *cluster.View {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.view
}

func (v *fakeViews) add(n cluster.Node) {
	v.mu.Lock()
	defer v.mu.Unlock()
	next := &cluster.View{Nodes: maps.Clone(v.view.Nodes), Signaling: maps.Clone(v.view.Signaling), Settled: true}
	if n.Role == cluster.RoleSignaling {
		next.Signaling[n.ID] = n
	} else {
		n.Capabilities = cmp.Or(n.Capabilities, control.Told())
		next.Nodes[n.ID] = n
	}
	v.view = next
}

// bury says that a boot has died.
func (v *fakeViews) bury(boot pin.BootID) {
	v.mu.Lock()
	defer v.mu.Unlock()
	next := *v.view
	next.Gone = map[pin.BootID]cluster.Departure{boot: cluster.DepartureDead}
	v.view = &next
}

func (v *fakeViews) settle(settled bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.view = &cluster.View{Nodes: v.view.Nodes, Signaling: v.view.Signaling, Settled: settled}
}
