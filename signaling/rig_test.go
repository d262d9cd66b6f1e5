package signaling

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	generous   = 20 * time.Second
	clusterKey = "0123456789abcdef0123456789abcdef-test"
	apiKey     = "APItest"
	apiSecret  = "fedcba9876543210fedcba9876543210"
	firstEpoch = 1769000000000
)

// rig is a cluster in one process: real edges, real WebSockets and real gRPC over
// TLS, in front of media nodes and a placer that only pretend.
type rig struct {
	t      *testing.T
	key    control.ClusterKey
	keys   *access.Keyring
	placer *fakePlacer
	views  *fakeViews
	log    *slog.Logger
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
		placer: &fakePlacer{pins: map[ring.RoomID]pin.Pin{}}, views: newFakeViews(),
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

// edge is one signaling node.
type edge struct {
	*Server
	rig  *rig
	addr string
	stop func()
}

func (r *rig) edge(change func(*Config)) *edge {
	r.t.Helper()
	config := DefaultConfig("edge")
	config.RetryBase, config.RetryMax = 2*time.Millisecond, 20*time.Millisecond
	if change != nil {
		change(&config)
	}
	pool := control.NewPool(r.key, control.DefaultConfig())
	r.t.Cleanup(pool.Close)
	server, err := New(config, Parts{
		Placer: r.placer, Links: pool, Views: r.views, Store: r.placer, Keys: r.keys,
		Resumer: access.NewResumer(r.key.ResumeKey()),
		Static:  fstest.MapFS{"index.html": {Data: []byte("<!doctype html>hello")}},
	}, r.log)
	if err != nil {
		r.t.Fatal(err)
	}
	lis := listen(r.t)
	stop := r.serve(func(ctx context.Context) error { return server.Run(ctx, lis) })
	return &edge{Server: server, rig: r, addr: lis.Addr().String(), stop: stop}
}

// node is one media node: it keeps rosters and generations as the real one does,
// and answers offers with a word.
type node struct {
	control.UnimplementedMediaServer

	id      ring.NodeID
	boot    pin.BootID
	control string
	stop    func()

	mu       sync.Mutex // guards the fields below
	refuse   func(*control.Attach) *control.Refused
	attaches []*control.Attach
	heard    []string // what the edges said, by peer name
	peers    map[string]*fakePeer
	gone     map[string]bool // peers whose media was lost
	silent   bool            // offers are not answered
}

type fakePeer struct {
	entry      *control.Peer
	generation uint64
	stream     grpc.BidiStreamingServer[control.EdgeMessage, control.PeerEvent]
	end        context.CancelFunc
	offered    bool
}

func (r *rig) node(id ring.NodeID) *node {
	r.t.Helper()
	lis := listen(r.t)
	n := &node{
		id: id, boot: pin.BootID(fmt.Sprintf("%013d-%s", firstEpoch, id)), control: lis.Addr().String(),
		peers: map[string]*fakePeer{}, gone: map[string]bool{},
	}
	n.stop = r.serve(func(ctx context.Context) error {
		return control.NewServer(r.key, r.log).Serve(ctx, lis, func(s *grpc.Server) { control.RegisterMediaServer(s, n) })
	})
	r.views.add(cluster.Node{ID: id, Boot: n.boot, Role: cluster.RoleSFU, Control: n.control})
	return n
}

// pin is a pin of the node.
func (n *node) pin(epoch uint64) pin.Pin {
	return pin.Pin{Fence: pin.Fence{Epoch: epoch, Nonce: 7}, Node: n.id, Boot: n.boot, Control: n.control}
}

func (n *node) Attach(stream grpc.BidiStreamingServer[control.EdgeMessage, control.PeerEvent]) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	a := first.GetAttach()
	ctx, end := context.WithCancel(stream.Context())
	defer end()
	p, refused := n.accept(a, stream, end)
	if refused != nil {
		return stream.Send(&control.PeerEvent{Fence: first.GetFence(), Event: &control.PeerEvent_Refused{Refused: refused}})
	}
	said := make(chan *control.EdgeMessage)
	go func() {
		defer close(said)
		for {
			m, err := stream.Recv()
			if err != nil {
				return
			}
			select {
			case said <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		select {
		case m, ok := <-said:
			if !ok || n.hear(p, m) {
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// accept attaches a peer. The first word is sent under the lock, so it is the first.
func (n *node) accept(a *control.Attach, stream grpc.BidiStreamingServer[control.EdgeMessage, control.PeerEvent], end context.CancelFunc) (*fakePeer, *control.Refused) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.attaches = append(n.attaches, a)
	if n.refuse != nil {
		if refused := n.refuse(a); refused != nil {
			return nil, refused
		}
	}
	if a.GetPin().GetBoot() != string(n.boot) {
		return nil, &control.Refused{Code: control.Refusal_REFUSAL_WRONG_BOOT}
	}
	id := a.GetPeer().GetId()
	p := n.peers[id]
	resumed := p != nil && p.offered && !n.gone[id]
	switch {
	case p != nil && a.GetGeneration() <= p.generation:
		return nil, &control.Refused{Code: control.Refusal_REFUSAL_STALE_GENERATION}
	case p != nil:
		n.send(p, a.GetPin().GetFence(), &control.PeerEvent{Event: &control.PeerEvent_Closed{Closed: &control.Closed{Reason: "superseded"}}})
		p.end()
	default:
		p = &fakePeer{entry: a.GetPeer()}
		n.peers[id] = p
		for _, other := range n.peers {
			if other != p {
				n.send(other, a.GetPin().GetFence(), &control.PeerEvent{Seq: 2, Event: &control.PeerEvent_RosterChange{
					RosterChange: &control.RosterChange{Change: &control.RosterChange_Joined{Joined: p.entry}},
				}})
			}
		}
	}
	p.generation, p.stream, p.end = a.GetGeneration(), stream, end
	attached := &control.Attached{Peer: id, Resumed: resumed, ChargedInReport: 3}
	for _, other := range n.peers {
		attached.Roster = append(attached.Roster, other.entry)
	}
	for _, expected := range a.GetExpected() {
		if n.peers[expected.GetId()] == nil {
			attached.Roster = append(attached.Roster, expected)
		}
	}
	n.send(p, a.GetPin().GetFence(), &control.PeerEvent{Seq: 1, Event: &control.PeerEvent_Attached{Attached: attached}})
	return p, nil
}

// send says something to a peer's edge. The caller holds n.mu.
func (n *node) send(p *fakePeer, fence *control.Fence, event *control.PeerEvent) {
	event.Fence = fence
	_ = p.stream.Send(event) // A stream that is gone is what many tests are about.
}

// say sends an event to the peer of that name, under a fence.
func (n *node) say(name string, fence pin.Fence, event *control.PeerEvent) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.peers {
		if p.entry.GetName() == name {
			n.send(p, control.FenceProto(fence), event)
		}
	}
}

// breakLinks ends every stream without a word.
func (n *node) breakLinks() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.peers {
		p.end()
	}
}

// hear reports whether the peer left.
func (n *node) hear(p *fakePeer, m *control.EdgeMessage) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	name := p.entry.GetName()
	switch e := m.GetMessage().(type) {
	case *control.EdgeMessage_Offer:
		n.heard = append(n.heard, fmt.Sprintf("%s offers %s fresh=%t slots=%d", name, e.Offer.GetId(), e.Offer.GetFresh(), len(e.Offer.GetSlots())))
		p.offered, n.gone[p.entry.GetId()] = true, false
		if n.silent {
			return false
		}
		n.send(p, m.GetFence(), &control.PeerEvent{Event: &control.PeerEvent_Answer{Answer: &control.Answer{
			OfferId: e.Offer.GetId(), Sdp: "answer of " + string(n.id) + " to " + e.Offer.GetSdp(),
		}}})
	case *control.EdgeMessage_View:
		n.heard = append(n.heard, fmt.Sprintf("%s views %d", name, len(e.View.GetWants())))
	case *control.EdgeMessage_Mute:
		n.heard = append(n.heard, fmt.Sprintf("%s mutes %v %t", name, e.Mute.GetSource(), e.Mute.GetMuted()))
	case *control.EdgeMessage_Leave:
		n.heard = append(n.heard, name+" leaves")
		delete(n.peers, p.entry.GetId())
		return true
	}
	return false
}

func (n *node) Rooms(context.Context, *control.RoomsRequest) (*control.RoomsReply, error) {
	return &control.RoomsReply{Node: string(n.id), Boot: string(n.boot), Rooms: []*control.HeldRoom{{
		Room: "lobby", Pin: control.PinProto(n.pin(firstEpoch)), Peers: []*control.HeldPeer{{Id: "p-1", Identity: "ada"}},
	}}}, nil
}

func (n *node) said() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return strings.Join(n.heard, "\n")
}

func (n *node) attached() []*control.Attach {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]*control.Attach(nil), n.attaches...)
}

func (n *node) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

// fakePlacer is a store of pins that does what the test says.
type fakePlacer struct {
	mu    sync.Mutex // guards the fields below
	pins  map[ring.RoomID]pin.Pin
	again func(refused pin.Pin) (pin.Pin, error)
	fail  error
	seen  []pin.Fence
	calls []string
	opens int
}

func (p *fakePlacer) set(room ring.RoomID, to pin.Pin) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pins[room] = to
}

func (p *fakePlacer) Place(_ context.Context, room ring.RoomID, _ int) (pin.Pin, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, "place")
	if p.fail != nil {
		return pin.Pin{}, p.fail
	}
	return p.pins[room], nil
}

func (p *fakePlacer) PlaceAgain(_ context.Context, room ring.RoomID, refused pin.Pin, _ int) (pin.Pin, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, "place again")
	if p.pins[room].Fence == refused.Fence {
		next, err := p.again(refused)
		if err != nil {
			return pin.Pin{}, err
		}
		p.pins[room] = next
	}
	return p.pins[room], nil
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
	return orchestrator.Explanation{Room: room, Owner: "sfu-1"}, nil
}

func (p *fakePlacer) Ping(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fail
}

// fakeViews is gossip.
type fakeViews struct {
	mu   sync.Mutex // guards view
	view *cluster.View
}

func newFakeViews() *fakeViews {
	return &fakeViews{view: &cluster.View{Nodes: map[ring.NodeID]cluster.Node{}, Settled: true}}
}

func (v *fakeViews) View() *cluster.View {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.view
}

func (v *fakeViews) add(n cluster.Node) {
	v.mu.Lock()
	defer v.mu.Unlock()
	nodes := map[ring.NodeID]cluster.Node{n.ID: n}
	maps.Copy(nodes, v.view.Nodes)
	v.view = &cluster.View{Nodes: nodes, Settled: true}
}

func (v *fakeViews) settle(settled bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.view = &cluster.View{Nodes: v.view.Nodes, Settled: settled}
}

// client is one browser's socket.
type client struct {
	t    *testing.T
	conn *websocket.Conn
}

func (e *edge) dial() *client {
	e.rig.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), generous)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, "ws://"+e.addr+"/ws", &websocket.DialOptions{Subprotocols: []string{wire.Subprotocol}})
	if err != nil {
		e.rig.t.Fatal(err)
	}
	conn.SetReadLimit(wire.MaxMessageBytes)
	e.rig.t.Cleanup(func() { _ = conn.CloseNow() })
	return &client{t: e.rig.t, conn: conn}
}

// join dials and joins as name.
func (e *edge) join(room, name string) (*client, *wire.Joined) {
	e.rig.t.Helper()
	c := e.dial()
	c.say(&wire.Join{Token: e.rig.token(room, name)})
	return c, hear[*wire.Joined](c)
}

func (r *rig) token(room, name string) string {
	r.t.Helper()
	grant := access.Everything(strings.ToLower(name), ring.RoomID(room))
	grant.Name = name
	token, err := r.keys.Mint(apiKey, grant, time.Hour)
	if err != nil {
		r.t.Fatal(err)
	}
	return token
}

func (c *client) say(m wire.Message) {
	c.t.Helper()
	frame, err := wire.Encode(m)
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(string(frame))
}

func (c *client) write(text string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), generous)
	defer cancel()
	if err := c.conn.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatalf("write %.100s: %v", text, err)
	}
}

func (c *client) offer(id string, fresh bool) {
	c.t.Helper()
	c.say(&wire.Offer{ID: id, SDP: "offer " + id, Fresh: fresh, Senders: wire.List[wire.Sender]{{Mid: "0", Source: wire.SourceCamera}}})
}

// next reads one message.
func (c *client) next() wire.Message {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), generous)
	defer cancel()
	_, frame, err := c.conn.Read(ctx)
	if err != nil {
		c.t.Fatalf("read: %v", err)
	}
	m, err := wire.DecodeServer(frame)
	if err != nil {
		c.t.Fatalf("decode %s: %v", frame, err)
	}
	return m
}

// hear reads one message, which must be of that kind.
func hear[M wire.Message](c *client) M {
	c.t.Helper()
	got := c.next()
	m, ok := got.(M)
	if !ok {
		text, _ := wire.Encode(got)
		c.t.Fatalf("heard %s, want %T", text, m)
	}
	return m
}

// closed reads until the socket closes and returns the code. Messages on the way
// are returned too.
func (c *client) closed() (websocket.StatusCode, []wire.Message) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), generous)
	defer cancel()
	var heard []wire.Message
	for {
		_, frame, err := c.conn.Read(ctx)
		if err != nil {
			return websocket.CloseStatus(err), heard
		}
		m, err := wire.DecodeServer(frame)
		if err != nil {
			c.t.Fatalf("decode %s: %v", frame, err)
		}
		heard = append(heard, m)
	}
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	limit := time.NewTimer(generous)
	defer limit.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-limit.C:
			t.Fatalf("no %s within %s", what, generous)
		case <-tick.C:
		}
	}
}
