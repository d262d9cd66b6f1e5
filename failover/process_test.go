package failover

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/panics"
)

// childVariable turns this test binary into a node that can be killed for real.
const childVariable = "HOLDFAST_FAILOVER_TEST_NODE"

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		serveAsChild()
		return
	}
	goleak.VerifyTestMain(m)
}

// serveAsChild serves a control port and holds a media port until it is killed, or until
// its parent is gone, which closes its standard input.
func serveAsChild() {
	key, err := control.ParseClusterKey("a cluster key for tests of failover")
	if err != nil {
		os.Exit(1)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		os.Exit(1)
	}
	media, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		os.Exit(1)
	}
	n := &realNode{node: cluster.Node{ID: "sfu-1", Boot: realBoot, Media: media.LocalAddr().String()}}
	fmt.Println(lis.Addr(), media.LocalAddr())
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = os.Stdin.Read(make([]byte, 1))
		cancel()
	}()
	server := control.NewServer(key, panics.New(), slog.New(slog.DiscardHandler))
	if server.Serve(ctx, lis, func(s *grpc.Server) { control.RegisterMediaServer(s, n) }) != nil {
		os.Exit(1)
	}
}

// startChild starts such a process. It is killed and reaped at the end of the test.
func startChild(t testing.TB) (node cluster.Node, signal func(syscall.Signal)) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^$") //nolint:gosec,noctx // this very binary; killed below
	child.Env = append(os.Environ(), childVariable+"=1")
	child.Stderr = os.Stderr
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = child.Process.Kill()
		_ = child.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the child says no addresses: %v", err)
	}
	addresses := strings.Fields(line)
	node = cluster.Node{ID: "sfu-1", Boot: realBoot, Role: cluster.RoleSFU, Control: addresses[0], Media: addresses[1]}
	return node, func(s syscall.Signal) {
		if err := child.Process.Signal(s); err != nil {
			t.Error(err)
		}
	}
}

// A process that is stopped is not dead, and is known to live when it goes on; killed, it is dead.
func TestStoppedProcessIsNotDeclaredAndAKilledOneIs(t *testing.T) {
	node, signal := startChild(t)
	g, gather, ended := watchReal(t, node)
	signal(syscall.SIGSTOP)
	stopped, limit := evidence{streamBroken, controlSilent, mediaSilent}, time.After(generous)
	for gather(streamBroken) != stopped { // The signal takes a moment to stop all threads.
		select {
		case <-limit:
			t.Fatal("a stopped process answers")
		default:
		}
	}
	if got := gather(streamBroken); got != stopped {
		t.Fatalf("stopped: %v, want %v", got, stopped)
	}
	if got := g.dead(); len(got) != 0 {
		t.Fatalf("a stopped process was reported: %q", got)
	}
	signal(syscall.SIGCONT)
	limit = time.After(generous)
	for gather(streamBroken).verdict() != verdictAlive {
		select {
		case <-limit:
			t.Fatal("a process that goes on is not known to live")
		default:
		}
	}
	signal(syscall.SIGKILL)
	select {
	case <-ended:
	case <-time.After(generous):
		t.Fatal("the death was not proven")
	}
	if got := g.dead(); len(got) != 1 {
		t.Fatalf("reported %q", got)
	}
}

// BenchmarkDetection kills one process per iteration and reports how long the proof took, from the
// signal to the report to gossip:
//
//	go test ./failover -run '^$' -bench Detection -benchtime 50x
func BenchmarkDetection(b *testing.B) {
	var took []time.Duration
	for range b.N {
		node, signal := startChild(b)
		_, _, ended := watchReal(b, node)
		started := time.Now()
		signal(syscall.SIGKILL)
		<-ended
		took = append(took, time.Since(started))
	}
	slices.Sort(took)
	at := func(share float64) float64 {
		return float64(took[int(share*float64(len(took)-1))].Microseconds()) / 1000
	}
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.95), "p95-ms")
	b.ReportMetric(at(1), "max-ms")
	b.ReportMetric(0, "ns/op") // The start of the child is not of interest.
}
