package control

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

const generous = 60 * time.Second

// media is a node that says hello, beats when it is told to, and echoes offers.
type media struct {
	UnimplementedMediaServer

	boot      string
	heartbeat chan struct{}
}

func (m *media) Watch(_ *WatchRequest, stream grpc.ServerStreamingServer[Heartbeat]) error {
	for seq := uint64(1); ; seq++ {
		if err := stream.Send(&Heartbeat{Node: "sfu-1", Boot: m.boot, Media: "127.0.0.1:9", Seq: seq}); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-m.heartbeat:
		}
	}
}

func (m *media) Drain(_ context.Context, request *DrainRequest) (*DrainReply, error) {
	return &DrainReply{Draining: !request.GetUndrain(), Rooms: request.GetDeadlineMs()}, nil
}

func (m *media) Outrank(_ context.Context, request *OutrankRequest) (*OutrankReply, error) {
	return &OutrankReply{Held: request.GetRoom() != ""}, nil
}

// node is a control server on a real socket.
type node struct {
	addr  string
	media *media
	log   *testkit.Log
	stop  func() error // ends it and returns what Serve returned
}

func startNode(t *testing.T, key ClusterKey, addr, boot string) *node {
	t.Helper()
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{addr: lis.Addr().String(), media: &media{boot: boot, heartbeat: make(chan struct{})}, log: &testkit.Log{}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	server := NewServer(key, panics.New(), slog.New(slog.NewTextHandler(n.log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	go func() { ended <- server.Serve(ctx, lis, func(s *grpc.Server) { RegisterMediaServer(s, n.media) }) }()
	n.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { _ = n.stop() })
	return n
}

func startPool(t *testing.T, key ClusterKey, config Config) *Pool {
	t.Helper()
	pool := NewPool(key, config)
	t.Cleanup(pool.Close)
	return pool
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), generous)
	t.Cleanup(cancel)
	return ctx
}

// watchedNode is a node, and a client whose Watch has heard it.
func watchedNode(t *testing.T) (*node, MediaClient, grpc.ServerStreamingClient[Heartbeat]) {
	t.Helper()
	key := mustKey(t, testKeyText)
	node := startNode(t, key, "127.0.0.1:0", "1769000000000-00000001")
	client, watch := watchOver(t, startPool(t, key, DefaultConfig()), node)
	return node, client, watch
}

func watchOver(t *testing.T, pool *Pool, node *node) (MediaClient, grpc.ServerStreamingClient[Heartbeat]) {
	t.Helper()
	client, err := pool.Client(node.addr)
	if err != nil {
		t.Fatal(err)
	}
	watch, err := client.Watch(testContext(t), &WatchRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch.Recv(); err != nil {
		t.Fatal(err)
	}
	return client, watch
}
