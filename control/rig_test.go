package control

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/panics"
)

const generous = 60 * time.Second

// logBuffer collects log lines of several goroutines.
type logBuffer struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func (b *logBuffer) wait(t *testing.T, want string) {
	t.Helper()
	testkit.Eventually(t, "log line "+want, func() bool { return strings.Contains(b.String(), want) })
}

// media is a node that says hello, beats when it is told to, and echoes offers.
type media struct {
	UnimplementedMediaServer

	boot string
	beat chan struct{}
}

func (m *media) Watch(_ *WatchRequest, stream grpc.ServerStreamingServer[Beat]) error {
	for seq := uint64(1); ; seq++ {
		if err := stream.Send(&Beat{Node: "sfu-1", Boot: m.boot, Media: "127.0.0.1:9", Seq: seq}); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return stream.Context().Err()
		case <-m.beat:
		}
	}
}

func (m *media) Outrank(_ context.Context, request *OutrankRequest) (*OutrankReply, error) {
	return &OutrankReply{Held: request.GetRoom() != ""}, nil
}

// node is a control server on a real socket.
type node struct {
	addr  string
	media *media
	log   *logBuffer
	stop  func() error // ends it and returns what Serve returned
}

func startNode(t *testing.T, key ClusterKey, addr, boot string) *node {
	t.Helper()
	lis, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	n := &node{addr: lis.Addr().String(), media: &media{boot: boot, beat: make(chan struct{})}, log: &logBuffer{}}
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
