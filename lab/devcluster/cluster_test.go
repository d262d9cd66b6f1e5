package devcluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

// start starts a cluster for the test and ends it afterwards.
func start(t *testing.T, o Options) *Cluster {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // the first one compiles
	defer cancel()
	c, err := Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func status(t *testing.T, c *Cluster) Status {
	t.Helper()
	s, err := c.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func node(t *testing.T, c *Cluster, name string) Node {
	t.Helper()
	n, err := c.Node(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func names(nodes []Node) []string {
	var list []string
	for _, n := range nodes {
		list = append(list, n.Name)
	}
	return list
}

// gone reports whether a process has ended: it is not there, or waits only to be
// reaped by whoever adopted it.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) != nil
	}
	_, fields, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(fields, "Z") || strings.HasPrefix(fields, "X")
}

func pids(t *testing.T, c *Cluster) []int {
	t.Helper()
	var list []int
	for _, n := range status(t, c).Nodes {
		if n.State == StateRunning {
			list = append(list, n.Pid)
		}
	}
	return list
}

// TestTheLifeOfACluster walks through everything that can be asked of one.
func TestTheLifeOfACluster(t *testing.T) {
	c := start(t, Options{})
	ctx := t.Context()

	up := status(t, c)
	want := []string{"store", "sfu-1", "sfu-2", "sfu-3", "signaling-1", "signaling-2", "front"}
	if got := names(up.Nodes); !up.Ready || !slices.Equal(got, want) {
		t.Fatalf("ready %t with %v, want %v", up.Ready, got, want)
	}
	for _, n := range up.Nodes {
		if n.State != StateRunning || gone(n.Pid) || len(n.Addresses) == 0 {
			t.Errorf("%s does not run: %+v", n.Name, n)
		}
	}
	if up.Page != c.URL() {
		t.Errorf("the page is at %s for the supervisor and at %s for us", up.Page, c.URL())
	}
	if _, err := get(ctx, c.http, c.URL(), ""); err != nil {
		t.Errorf("the page does not answer: %v", err)
	}
	if token, err := c.Token("room", "Ada"); err != nil || token == "" {
		t.Errorf("no token: %v", err)
	}

	before := node(t, c, "sfu-2")
	if err := c.Kill(ctx, "sfu-2", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if n := node(t, c, "sfu-2"); n.State != StateDead || !gone(before.Pid) || !strings.Contains(n.Ended, "killed") {
		t.Errorf("after SIGKILL: %+v", n)
	}
	testkit.Eventually(t, "the signaling nodes to miss it", func() bool { return !seen(t, c, "sfu-2") })
	if n := node(t, c, "sfu-2"); n.State != StateDead {
		t.Errorf("a killed node came back unasked: %+v", n)
	}
	if err := c.Kill(ctx, "sfu-2", syscall.SIGKILL); !errors.Is(err, ErrConflict) {
		t.Errorf("killing a dead node: %v", err)
	}

	outsideTheKernelsRange(t, up.Nodes)
	occupy(t, "udp", before.Addresses[child.AddressMedia])
	occupy(t, "tcp", before.Addresses[child.AddressMetrics])
	again, err := c.StartNode(ctx, "sfu-2")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{child.AddressMedia, child.AddressMetrics} {
		if again.Addresses[kind] == before.Addresses[kind] {
			t.Errorf("%s: %s is somebody else's now", kind, again.Addresses[kind])
		}
	}
	if again.Pid == before.Pid || again.Starts != 2 || !seen(t, c, "sfu-2") {
		t.Errorf("restarted as %+v, seen %t", again, seen(t, c, "sfu-2"))
	}
	if _, err := c.StartNode(ctx, "sfu-2"); !errors.Is(err, ErrConflict) {
		t.Errorf("starting a running node: %v", err)
	}

	// One frozen node does not hold the others up.
	if err := c.Kill(ctx, "sfu-3", syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	added, err := c.AddSFU(ctx)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the terminal to show that the frozen node died", func() bool { return strings.Contains(c.Output(), "sfu-3 died (") })
	if err := c.Kill(ctx, "sfu-3", syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if added.Name != "sfu-4" || !seen(t, c, "sfu-4") {
		t.Errorf("added %+v", added)
	}
	if log, err := c.Logs(ctx, "sfu-4"); err != nil || !strings.Contains(log, "media node is up") {
		t.Errorf("the log of sfu-4: %q, %v", log, err)
	}
	if err := c.Kill(ctx, "sfu-9", syscall.SIGKILL); !errors.Is(err, ErrNoSuchNode) ||
		err.Error() != `no such node: "sfu-9"; there are store, sfu-1, sfu-2, sfu-3, sfu-4, signaling-1, signaling-2, front` {
		t.Errorf("killing a node that never was: %v", err)
	}
	aWrongKeyIsNotReady(t, c)
	signalingComesBack(t, c)
	topShows(t, c, "Holdfast  ", "0 rooms  0 people", "NODE ", "ROOM ", "  sfu-2 died (")
	for _, said := range []string{"Holdfast starts 3 media nodes", c.URL(), "sfu-2 was killed. Start it again:", " dev start sfu-2\n", "  sfu-4 is up\n", "  sfu-3 is back: it was frozen or cut off, not dead\n"} {
		testkit.Eventually(t, "the terminal to show: "+said, func() bool { return strings.Contains(c.Output(), said) })
	}
	if out := c.Output(); strings.Contains(out, "WARN") || strings.Contains(out, "INFO") {
		t.Errorf("people were shown a log:\n%s", out)
	}
}

// signalingComesBack kills a signaling node: the page stays, through the other
// one, and the node comes back at its old address, which the front knows.
func signalingComesBack(t *testing.T, c *Cluster) {
	t.Helper()
	ctx, before := t.Context(), node(t, c, "signaling-1")
	if err := c.Kill(ctx, "signaling-1", syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for range 6 {
		if _, err := get(ctx, c.http, c.URL(), ""); err != nil {
			t.Errorf("with one signaling node left, the page does not answer: %v", err)
		}
	}
	after, err := c.StartNode(ctx, "signaling-1")
	if err != nil {
		t.Fatal(err)
	}
	if after.Addresses[child.AddressHTTP] != before.Addresses[child.AddressHTTP] {
		t.Errorf("it moved from %s to %s", before.Addresses[child.AddressHTTP], after.Addresses[child.AddressHTTP])
	}
}

// seen reports whether the operator's API lists the node.
func seen(t *testing.T, c *Cluster, name string) bool {
	t.Helper()
	nodes, err := c.AdminNodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(nodes, func(n AdminNode) bool { return n.Node == name })
}

// TestNoChildOutlivesItsSupervisor ends the supervisor in every way there is, with
// one child frozen, and looks for survivors, and for the folder of the logs: who was killed leaves it to
// the next one.
func TestNoChildOutlivesItsSupervisor(t *testing.T) {
	// Under nohup the supervisor would inherit that SIGHUP is ignored; exec resets what is handled.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	t.Cleanup(func() { signal.Stop(hangup) })
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			c := start(t, Options{SFU: 2, Signaling: 1})
			children, logs := pids(t, c), status(t, c).LogDir
			if _, err := os.Stat(filepath.Join(logs, "sfu-1.log")); err != nil {
				t.Fatal(err)
			}
			if len(children) != 5 {
				t.Fatalf("%d children, want 5", len(children))
			}
			if err := c.Kill(t.Context(), "sfu-2", syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			if err := c.KillSupervisor(sig); err != nil {
				t.Fatal(err)
			}
			for _, pid := range children {
				testkit.Eventually(t, fmt.Sprintf("child %d to end", pid), func() bool { return gone(pid) })
			}
			if sig == syscall.SIGKILL {
				next := New(Defaults())
				if err := next.prepare(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { os.RemoveAll(next.Status().LogDir) })
			}
			// Another process may sweep at the same time.
			testkit.Eventually(t, "the logs to be removed", func() bool {
				_, err := os.Stat(logs)
				return errors.Is(err, os.ErrNotExist)
			})
		})
	}
}

// TestWhatASupervisorIsAsked: one cluster, asked by a stranger, for what it lacks, for a node with another environment,
// and for its end, as `holdfast dev stop` asks.
func TestWhatASupervisorIsAsked(t *testing.T) {
	c := start(t, Options{SFU: 2, Signaling: 1, NodeEnv: map[string][]string{"sfu-2": {"HOLDFAST_TEST_MARK=first"}}})
	// Any page of a browser on this machine can reach the port.
	stranger := &Client{state: c.state, http: c.http}
	stranger.state.Token = "guess"
	if err := stranger.Stop(t.Context()); err == nil {
		t.Error("a wrong token was accepted")
	}
	mark := func(name string) string { return environment(t, node(t, c, name).Pid, "HOLDFAST_TEST_MARK") }
	if mark("sfu-1") != "" || mark("sfu-2") != "first" {
		t.Errorf("marks are %q and %q", mark("sfu-1"), mark("sfu-2"))
	}
	saysWhatIsMissing(t, c)
	if _, err := c.StartNode(t.Context(), "sfu-2", "HOLDFAST_TEST_MARK=second"); err != nil {
		t.Fatal(err)
	}
	if mark("sfu-2") != "second" {
		t.Errorf("after the restart the mark is %q", mark("sfu-2"))
	}
	children := pids(t, c)
	if err := c.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, pid := range append(children, c.SupervisorPid()) {
		testkit.Eventually(t, fmt.Sprintf("process %d to end", pid), func() bool { return gone(pid) })
	}
	if _, err := os.Stat(filepath.Join(c.dir.path, "state.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the state file is still there: %v", err)
	}
}

// saysWhatIsMissing: a cluster is ready while people can join.
func saysWhatIsMissing(t *testing.T, c *Cluster) {
	t.Helper()
	check := func(ready bool, said ...string) {
		t.Helper()
		s := status(t, c)
		head, _, _ := strings.Cut(s.Table(), "\n")
		if s.Ready != ready {
			t.Errorf("ready %t, want %t: %s", s.Ready, ready, head)
		}
		for _, want := range said {
			if !strings.Contains(head, want) {
				t.Errorf("it says %q, want %q in it", head, want)
			}
		}
	}
	for _, step := range []struct {
		kill  string
		ready bool
		said  []string
	}{{"sfu-2", true, []string{"(ready)"}}, {"store", false, []string{"not ready", "store"}}, {"front", false, []string{"store", "front"}}, {"sfu-1", false, []string{"sfu"}}} {
		if err := c.Kill(t.Context(), step.kill, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		check(step.ready, step.said...)
	}
	for _, name := range []string{"store", "front", "sfu-1"} {
		if _, err := c.StartNode(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	check(true, "(ready)")
}

func environment(t *testing.T, pid int, key string) string {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	for pair := range strings.SplitSeq(string(content), "\x00") {
		if value, ok := strings.CutPrefix(pair, key+"="); ok {
			return value
		}
	}
	return ""
}
