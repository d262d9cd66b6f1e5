package failover

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

const generous = 60 * time.Second

// realNode is a control server and a UDP socket, each of which can be closed by itself.
type realNode struct {
	control.UnimplementedMediaServer

	node      cluster.Node
	stopServe func()
	media     net.PacketConn
}

// Watch is part of control.MediaServer.
func (n *realNode) Watch(_ *control.WatchRequest, stream control.Media_WatchServer) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := stream.Send(&control.Heartbeat{Node: string(n.node.ID), Boot: string(n.node.Boot), Media: n.node.Media}); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-stream.Context().Done():
			return nil
		}
	}
}

func testKey(t testing.TB) control.ClusterKey {
	t.Helper()
	key, err := control.ParseClusterKey("a cluster key for tests of failover")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func startRealNode(t *testing.T, id ring.NodeID, boot pin.BootID, controlAddr, mediaAddr string) *realNode {
	t.Helper()
	lis, err := net.Listen("tcp", controlAddr)
	if err != nil {
		t.Fatal(err)
	}
	media, err := net.ListenPacket("udp", mediaAddr)
	if err != nil {
		t.Fatal(err)
	}
	n := &realNode{media: media, node: cluster.Node{
		ID: id, Boot: boot, Role: cluster.RoleSFU, Control: lis.Addr().String(), Media: media.LocalAddr().String(),
	}}
	ctx, cancel := context.WithCancel(context.Background())
	var served sync.WaitGroup
	served.Go(func() {
		server := control.NewServer(testKey(t), panics.New(), slog.New(slog.DiscardHandler))
		if err := server.Serve(ctx, lis, func(s *grpc.Server) { control.RegisterMediaServer(s, n) }); err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	n.stopServe = func() { cancel(); served.Wait() }
	t.Cleanup(func() { n.stopServe(); _ = media.Close() })
	return n
}

// gossip is a Membership whose view holds the given nodes until they are reported dead.
type gossip struct {
	events chan cluster.Event

	mu       sync.Mutex // guards the fields below
	view     *cluster.View
	reported []string
}

func newGossip(nodes ...cluster.Node) *gossip {
	view := &cluster.View{Nodes: map[ring.NodeID]cluster.Node{}, Gone: map[pin.BootID]cluster.Departure{}, Settled: true}
	for _, node := range nodes {
		view.Nodes[node.ID] = node
	}
	return &gossip{view: view, events: make(chan cluster.Event, 100)}
}

func (g *gossip) Subscribe() (<-chan cluster.Event, func()) { return g.events, func() {} }

func (g *gossip) View() *cluster.View {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.view
}

func (g *gossip) SetUnreachable([]pin.BootID) {}

func (g *gossip) ConfirmDead(id ring.NodeID, boot pin.BootID, why string) {
	g.ReportDead(id, boot, why)
}

func (g *gossip) ReportDead(id ring.NodeID, boot pin.BootID, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reported = append(g.reported, string(id)+" "+why)
	node := g.view.Nodes[id]
	next := &cluster.View{Nodes: map[ring.NodeID]cluster.Node{}, Gone: map[pin.BootID]cluster.Departure{boot: cluster.DepartureDead}, Settled: true}
	for other, n := range g.view.Nodes {
		if n.Boot != boot {
			next.Nodes[other] = n
		}
	}
	g.view = next
	g.events <- cluster.Event{Kind: cluster.EventDead, Node: node, Why: why}
}

func (g *gossip) dead() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.reported...)
}

// watchReal runs the watch of one node with a real pool and real probes. The channel closes when
// the watch has ended, which without a cancel is the proof of a death.
func watchReal(t testing.TB, node cluster.Node) (g *gossip, gather func(streamState) evidence, ended <-chan struct{}) {
	t.Helper()
	pool := control.NewPool(testKey(t), control.DefaultConfig())
	t.Cleanup(pool.Close)
	config := DefaultConfig()
	config.Self = "signaling-1"
	g = newGossip(node)
	f := New(config, g, nil, nil, nil, pool, slog.New(slog.NewTextHandler(io.Discard, nil)))
	heard := make(chan struct{})
	f.nodes = &firstHeartbeat{Nodes: pool, heard: heard}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f.watch(ctx, &watching{node: node, health: newPeerHealth(f.clock)}) }()
	t.Cleanup(func() { cancel(); <-done })
	select {
	case <-heard:
	case <-time.After(generous):
		t.Fatal("no heartbeat")
	}
	return g, func(stream streamState) evidence { return f.gather(ctx, node, stream) }, done
}

// firstBeat tells when a Watch has beaten.
type firstHeartbeat struct {
	Nodes

	once  sync.Once
	heard chan struct{}
}

func (b *firstHeartbeat) Watch(ctx context.Context, addr, signaling string, heartbeat func(control.Hello) error) error {
	return b.Nodes.Watch(ctx, addr, signaling, func(h control.Hello) error {
		err := heartbeat(h)
		b.once.Do(func() { close(b.heard) })
		return err
	})
}

const realBoot = pin.BootID("1769000000000-00000001")

func TestDeadProcessIsProvenWithRealSockets(t *testing.T) {
	n := startRealNode(t, "sfu-1", realBoot, "127.0.0.1:0", "127.0.0.1:0")
	g, _, ended := watchReal(t, n.node)
	_ = n.media.Close()
	started := time.Now()
	n.stopServe()
	select {
	case <-ended:
	case <-time.After(generous):
		t.Fatal("the death was not proven")
	}
	t.Logf("proven %s after the control port began to close", time.Since(started).Round(100*time.Microsecond))
	if got := g.dead(); len(got) != 1 || got[0] != "sfu-1 proof: stream broken, control refused, media refused" {
		t.Fatalf("reported %q", got)
	}
}

// One half of a node is gone, the other lives: a listener that was closed or is behind
// a REJECT rule while media flows, and a UDP port that is refused while the process answers.
func TestHalfDeadNodesAreNotDeclaredWithRealSockets(t *testing.T) {
	t.Run("control refused, media open", func(t *testing.T) {
		n := startRealNode(t, "sfu-1", realBoot, "127.0.0.1:0", "127.0.0.1:0")
		g, gather, _ := watchReal(t, n.node)
		n.stopServe()
		want := evidence{streamBroken, controlRefused, mediaSilent}
		for range 3 {
			if got := gather(streamBroken); got != want || got.verdict() != verdictSuspect {
				t.Fatalf("evidence %v (%s), want %v", got, got.verdict(), want)
			}
		}
		if got := g.dead(); len(got) != 0 {
			t.Fatalf("reported %q", got)
		}
	})
	t.Run("media refused, control open", func(t *testing.T) {
		n := startRealNode(t, "sfu-1", realBoot, "127.0.0.1:0", "127.0.0.1:0")
		g, gather, _ := watchReal(t, n.node)
		_ = n.media.Close()
		want := evidence{streamBroken, controlSame, mediaRefused}
		got := gather(streamBroken)
		for limit := time.Now().Add(generous); got.Control == controlSilent && time.Now().Before(limit); {
			got = gather(streamBroken) // A busy machine may be late with the answer.
		}
		if got != want || got.verdict() != verdictAlive {
			t.Fatalf("evidence %v (%s), want %v", got, got.verdict(), want)
		}
		if got := g.dead(); len(got) != 0 {
			t.Fatalf("reported %q", got)
		}
	})
	t.Run("frozen: the kernel accepts, nobody speaks", func(t *testing.T) {
		lis, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer lis.Close()
		media, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer media.Close()
		config := control.DefaultConfig()
		config.HelloTimeout = 200 * time.Millisecond
		pool := control.NewPool(testKey(t), config)
		defer pool.Close()
		f := New(DefaultConfig(), newGossip(), nil, nil, nil, pool, slog.New(slog.DiscardHandler))
		node := cluster.Node{ID: "sfu-1", Boot: realBoot, Control: lis.Addr().String(), Media: media.LocalAddr().String()}
		want := evidence{streamBroken, controlSilent, mediaSilent}
		if got := f.gather(t.Context(), node, streamBroken); got != want {
			t.Fatalf("evidence %v, want %v", got, want)
		}
	})
}

func TestRestartAtTheSameAddressIsProofWithRealSockets(t *testing.T) {
	old := startRealNode(t, "sfu-1", realBoot, "127.0.0.1:0", "127.0.0.1:0")
	g, _, ended := watchReal(t, old.node)
	// The media port stays bound all the while, as if the new process had taken it at once.
	old.stopServe()
	startRealNode(t, "sfu-1", "1769000000009-00000009", old.node.Control, "127.0.0.1:0")
	select {
	case <-ended:
	case <-time.After(generous):
		t.Fatal("the newer boot was no proof")
	}
	if got := g.dead(); len(got) != 1 {
		t.Fatalf("reported %q", got)
	}
}

func TestProbeOfNoAddressProvesNothing(t *testing.T) {
	for _, addr := range []string{"", "nonsense", "127.0.0.1:http-but-not", "256.0.0.1:9"} {
		if got := probeMedia(t.Context(), addr); got != mediaSilent {
			t.Errorf("probe of %q: %s", addr, got)
		}
	}
}
