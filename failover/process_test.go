package failover

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
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
	// The node holds the socket: one that nobody holds is closed by the garbage collector.
	n := &realNode{media: media, node: cluster.Node{ID: "sfu-1", Boot: realBoot, Media: media.LocalAddr().String()}}
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

// startChild starts such a process. It is killed and reaped at the end of the test. It has a process group of its own: a SIGCONT
// for the group of the tests, as the kernel sends to a group that becomes orphaned, does not wake it.
func startChild(t testing.TB) (node cluster.Node, process *os.Process) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^$") //nolint:gosec,noctx // this very binary; killed below
	child.Env = append(os.Environ(), childVariable+"=1")
	child.Stderr = os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
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
	return node, child.Process
}

func signal(t testing.TB, process *os.Process, s syscall.Signal) {
	t.Helper()
	if err := process.Signal(s); err != nil {
		t.Fatalf("send %v: %v", s, err)
	}
}

// stop returns once no thread of the process runs any more: kill(2) returns sooner, and on a busy machine a thread may
// still answer for a while.
func stop(t testing.TB, process *os.Process) {
	t.Helper()
	signal(t, process, syscall.SIGSTOP)
	again, limit := time.NewTicker(time.Millisecond), time.After(generous)
	defer again.Stop()
	for strings.Trim(threadStates(process.Pid), "T") != "" {
		select {
		case <-again.C:
		case <-limit:
			t.Fatalf("SIGSTOP does not stop the process: its threads are %q", threadStates(process.Pid))
		}
	}
}

// threadStates has one letter for each thread of the process, as proc(5) has them: T for a stopped one. It is empty
// where there is no /proc, or no such process.
func threadStates(pid int) string {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // the pattern is a good one
	var states strings.Builder
	for _, file := range files {
		stat, err := os.ReadFile(file) //nolint:gosec // of the test's own child
		if _, after, found := strings.Cut(string(stat), ") "); err == nil && found {
			states.WriteString(after[:1])
		}
	}
	return states.String()
}

// A process that is stopped is not dead, and is known to live when it goes on; killed, it is dead.
func TestStoppedProcessIsNotDeclaredAndAKilledOneIs(t *testing.T) {
	node, process := startChild(t)
	g, gather, ended := watchReal(t, node)
	stop(t, process)
	want := evidence{streamBroken, controlSilent, mediaSilent}
	if got := gather(streamBroken); got != want {
		t.Fatalf("stopped: %v, want %v; the threads of process %d are %q, and reported was %q", got, want, process.Pid, threadStates(process.Pid), g.dead())
	}
	if got := g.dead(); len(got) != 0 {
		t.Fatalf("a stopped process was reported: %q", got)
	}
	signal(t, process, syscall.SIGCONT)
	limit := time.After(generous)
	for got := gather(streamBroken); got.verdict() != verdictAlive; got = gather(streamBroken) {
		select {
		case <-limit:
			t.Fatalf("a process that goes on is not known to live: %v; its threads are %q", got, threadStates(process.Pid))
		default:
		}
	}
	signal(t, process, syscall.SIGKILL)
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
		node, process := startChild(b)
		_, _, ended := watchReal(b, node)
		started := time.Now()
		signal(b, process, syscall.SIGKILL)
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
