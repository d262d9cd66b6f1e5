package cluster

import (
	"bufio"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

// A child is a member in a process of its own, this test binary again, so that it
// can be frozen for real.
const (
	childJoin = "HOLDFAST_TEST_CLUSTER_JOIN"
	childKey  = "HOLDFAST_TEST_CLUSTER_KEY"
	childName = "HOLDFAST_TEST_CLUSTER_NAME"
)

func runChild() {
	key, err := hex.DecodeString(os.Getenv(childKey))
	if err != nil {
		os.Exit(2)
	}
	c, err := New(Config{
		Node: sfuNode(os.Getenv(childName), os.Getpid()), Bind: "127.0.0.1:0", Keys: [][]byte{key}, Join: []string{os.Getenv(childJoin)},
	}, quiet())
	if err != nil {
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() { // The parent's end is ours.
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		stop()
	}()
	if err := c.Run(ctx); err != nil {
		os.Exit(1)
	}
}

func startChild(t *testing.T, n *network, name string) *exec.Cmd {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childJoin+"="+n.seed, childKey+"="+hex.EncodeToString(n.key), childName+"="+name)
	child.Stderr = os.Stderr
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = child.Process.Signal(syscall.SIGCONT)
		stdin.Close()
		_ = child.Wait()
	})
	return child
}

// TestFrozenProcessDiesAndReturns stops a process for real: it is declared dead, and
// when it goes on it is joined again and no longer among the gone.
func TestFrozenProcessDiesAndReturns(t *testing.T) {
	n := newNetwork(t)
	signaling := n.start("signaling-1")
	all := []*process{signaling}
	for i := range number("HOLDFAST_FREEZE_OTHERS", 4) - 1 {
		all = append(all, n.start(fmt.Sprintf("sfu-%d", i+1)))
	}
	stoodStill := stillness(t)
	child := startChild(t, n, "sfu-frozen")
	boot := sfuNode("", child.Process.Pid).Boot
	for _, p := range all {
		p.await("the child", func(v *View) bool { return v.Nodes["sfu-frozen"].Boot == boot && len(v.Nodes) == len(all) })
	}
	var took []time.Duration
	for range rounds() {
		if err := child.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		frozen := time.Now()
		signaling.await("the frozen child dead", func(v *View) bool { return v.Gone[boot] == DepartureDead })
		took = append(took, time.Since(frozen).Round(time.Millisecond))
		if signaling.View().Ring.Len() != len(all)-1 {
			t.Fatalf("ring of %q with one frozen", signaling.View().Ring.Nodes())
		}
		for _, p := range all {
			p.await("the frozen child dead", func(v *View) bool { return v.Gone[boot] == DepartureDead })
		}
		if err := child.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		for _, p := range all {
			p.await("the child again, and everybody", func(v *View) bool {
				return v.Gone[boot] == "" && v.Nodes["sfu-frozen"].Boot == boot && v.Ring.Len() == len(all)
			})
		}
	}
	slices.Sort(took)
	t.Logf("declared dead after %v", took)
	if rounds() == 1 {
		want := []string{"joined (gossip)", "dead (gossip)", "joined (returned)"}
		testkit.Eventually(t, "three events", func() bool { return len(signaling.events("sfu-frozen")) >= 3 })
		if got := signaling.events("sfu-frozen"); !slices.Equal(got, want) {
			t.Errorf("signaling node heard %q, want %q", got, want)
		}
	}
	for _, p := range all[1:] {
		if got := signaling.events(p.config.Node.ID); len(got) != 1 {
			if still := stoodStill(); still > 3*probeTimeout { // These members are this process: no news of them is false then.
				t.Logf("news of %s, while the machine stood still for %v: %q", p.config.Node.ID, still, got)
				continue
			}
			t.Errorf("false news of %s: %q", p.config.Node.ID, got)
		}
	}
}

// stillness says for how long at most this process has not been run since it was called.
func stillness(t *testing.T) func() time.Duration {
	t.Helper()
	var longest atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				longest.Store(max(longest.Load(), int64(time.Since(last))))
				last = time.Now()
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return func() time.Duration { return time.Duration(longest.Load()) }
}

// TestShortStallIsNoDeath stops a process for a third of a second, as a busy machine
// does, and lets it leave by SIGTERM: nobody may have believed it dead.
func TestShortStallIsNoDeath(t *testing.T) {
	stall := time.Duration(number("HOLDFAST_STALL_MS", 300)) * time.Millisecond
	n := newNetwork(t)
	all := []*process{n.start("signaling-1"), n.start("sfu-1"), n.start("sfu-2")}
	child := startChild(t, n, "sfu-late")
	for _, p := range all {
		p.await("the child", func(v *View) bool { return v.Nodes["sfu-late"].Boot != "" })
	}
	for range rounds() {
		if err := child.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		<-time.After(stall)
		if err := child.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		<-time.After(stall)
	}
	if err := child.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		testkit.Eventually(t, "the end of the child", func() bool { return len(p.events("sfu-late")) > 1 })
		if got := p.events("sfu-late"); !slices.Equal(got, []string{"joined (gossip)", "left (leave message)"}) {
			t.Errorf("%s heard %q", p.config.Node.ID, got)
		}
	}
}

// rounds is how often the tests of this file freeze their child: once, or more to
// measure (see docs/CLUSTER.md).
func rounds() int { return number("HOLDFAST_FREEZE_ROUNDS", 1) }

// number reads a number from the environment.
func number(name string, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return otherwise
}
