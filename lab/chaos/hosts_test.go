//go:build linux

package chaos

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestHurtHosts runs each scenario of the network once, and looks whether the machine's own
// interfaces and rules stay what they are. Two at a time, each in namespaces of its own.
func TestHurtHosts(t *testing.T) {
	mayMakeHosts(t)
	before := machine(t)
	t.Run("all", func(t *testing.T) { // ends when each of them has
		for _, scenario := range those(scenario.hosts) {
			if scenario == ControlBlockedOne {
				continue // It takes a minute: soaks draw it, and signaling/cutoff_test.go has the rule.
			}
			t.Run(string(scenario), func(t *testing.T) {
				t.Parallel()
				hurtHost(t, scenario)
			})
		}
	})
	if after := machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

func hurtHost(t *testing.T, scenario Name) {
	t.Helper()
	cmd := command(t, scenario, "1")
	if scenario == HalfPartition { // one of them for longer than the move takes
		cmd.Args = append(cmd.Args, "--cut", "4s")
	}
	r, err := reported(t, cmd)
	if err != nil {
		t.Error(err)
	}
	if !r.Kept || len(r.Trials) != 1 {
		t.Errorf("kept %t in %d trials, want 1", r.Kept, len(r.Trials))
	}
	s, _ := find(scenario)
	moves := s.expect.Moves
	if moves != (r.Packets != nil) || (moves && (r.Packets.Streams.Count == 0 || r.Packets.Missing > 0)) {
		t.Errorf("gaps: %+v", r.Packets)
	}
}

// TestNothingOutlivesARun ends one in the middle, by killing what people started and nothing else.
func TestNothingOutlivesARun(t *testing.T) {
	mayMakeHosts(t)
	before := machine(t)
	cmd := command(t, Partition, "100")
	hit := make(chan struct{}, 1)
	cmd.Stderr = progress(func(lines string) {
		if strings.Contains(lines, "people join") {
			hit <- struct{}{}
		}
	})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-hit:
	case <-time.After(joinLimit):
	}
	children := descendants(t, cmd.Process.Pid)
	if len(children) < 8 { // itself in the namespace, the supervisor, six hosts and the front
		t.Errorf("%d processes run", len(children))
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	err := poll(t.Context(), joinLimit, func() error {
		for _, pid := range children {
			if _, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)); err == nil { // a zombie has none
				return fmt.Errorf("process %d lives on", pid)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if after := machine(t); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// TestWhoCannotMakeHosts hears what is missing, and where they cannot be.
func TestWhoCannotMakeHosts(t *testing.T) {
	mayMakeHosts(t)
	for name, test := range map[string]struct {
		with func(*exec.Cmd)
		want string
	}{
		"without root": {func(c *exec.Cmd) {
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}, "root on Linux"},
		"on a running one": {func(c *exec.Cmd) { c.Args = append(c.Args, "--running") }, "leave --running"},
	} {
		cmd := command(t, Partition, "1")
		cmd.Path = readableByAll(t, cmd.Path)
		test.with(cmd)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), test.want) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// readableByAll copies a program to where every user may run it.
func readableByAll(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "holdfast-for-all-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	to := filepath.Join(dir, "holdfast")
	if err := os.WriteFile(to, content, 0o755); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	return to
}

// machine is what a run must not change: the interfaces, and the tables of nftables.
func machine(t *testing.T) string {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	tables, err := exec.CommandContext(t.Context(), "nft", "list", "tables").Output()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, one := range all {
		addresses, err := one.Addrs()
		fmt.Fprintln(&text, one.Name, addresses, err)
	}
	return text.String() + string(tables)
}

// descendants are the processes that a process started, and those that they did.
func descendants(t *testing.T, pid int) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	of := make(map[int][]int)
	for _, path := range stats {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		var child, parent int
		_, rest, _ := strings.Cut(string(content), ") ")
		if _, err := fmt.Sscan(string(content), &child); err != nil {
			continue
		}
		var state string
		if _, err := fmt.Sscan(rest, &state, &parent); err == nil {
			of[parent] = append(of[parent], child)
		}
	}
	var found []int
	for next := of[pid]; len(next) > 0; {
		found = append(found, next...)
		var more []int
		for _, child := range next {
			more = append(more, of[child]...)
		}
		next = more
	}
	return found
}
