//go:build linux

package chaos

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

// TestHurtHosts runs each scenario of the network once, and looks whether the machine's own
// interfaces and rules stay what they are. Two at a time, each in namespaces of its own.
func TestHurtHosts(t *testing.T) {
	mayMakeHosts(t)
	before := machine(t)
	t.Run("all", func(t *testing.T) { // ends when each of them has
		for _, scenario := range those(scenario.hosts) {
			if scenario == ControlBlockedOne {
				continue // It takes a minute: soaks draw it, and signaling/ready_test.go has the rule.
			}
			t.Run(string(scenario), func(t *testing.T) {
				t.Parallel()
				hurtHost(t, scenario)
			})
		}
	})
	for _, one := range left(before, machine(t)) {
		t.Errorf("the run left %s", one)
	}
}

func hurtHost(t *testing.T, scenario Name) {
	t.Helper()
	s, _ := find(scenario)
	cmd := command(t, scenario, "1")
	if scenario == HalfPartition { // one of them for longer than the move takes
		cmd.Args = append(cmd.Args, "--cut", "4s")
	}
	if s.spreads {
		cmd.Args = append(cmd.Args, "--large", strconv.Itoa(leastSpread))
	}
	r, err := reported(t, cmd)
	if err != nil {
		t.Error(err)
	}
	if !r.Kept || len(r.Trials) != 1 {
		t.Errorf("kept %t in %d trials, want 1", r.Kept, len(r.Trials))
	}
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
	mark := fmt.Sprintf("LAB_TEST_MARK=%d", time.Now().UnixNano())
	cmd.Env = append(os.Environ(), mark)
	joining := make(chan struct{}, 1)
	cmd.Stderr = progress(func(lines string) {
		if strings.Contains(lines, "people join") {
			joining <- struct{}{}
		}
	})
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-joining:
	case <-time.After(joinLimit):
	}
	if n := marked(mark); n < 9 { // two of the command, the supervisor, six hosts and the front
		t.Errorf("%d processes run", n)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	testkit.Eventually(t, "all processes to end", func() bool { return marked(mark) == 0 })
	for _, one := range left(before, machine(t)) {
		t.Errorf("the run left %s", one)
	}
}

// marked counts the processes with a variable in their environment, which children inherit.
func marked(variable string) (count int) {
	all, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is a good one
	for _, path := range all {
		if content, err := os.ReadFile(path); err == nil && strings.Contains(string(content), variable) {
			count++
		}
	}
	return count
}

// TestHostsNeedTheirOwnCluster: who wants the network of a running one hurt hears what to leave away.
func TestHostsNeedTheirOwnCluster(t *testing.T) {
	mayMakeHosts(t)
	cmd := command(t, Partition, "1")
	cmd.Args = append(cmd.Args, "--running")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "leave --running") {
		t.Errorf("%v\n%s", err, out)
	}
}

// machine is what a run must not change: the interfaces, and the tables of nftables.
func machine(t *testing.T) (lines []string) {
	t.Helper()
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	tables, err := exec.CommandContext(t.Context(), "nft", "list", "tables").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range all {
		addresses, err := one.Addrs()
		lines = append(lines, fmt.Sprint(one.Name, " ", addresses, " ", err))
	}
	return append(lines, strings.Split(string(tables), "\n")...)
}

// ours is what lab/hosts gives names or addresses to. Others use the machine, too.
var ours = regexp.MustCompile(`^(switch|port\d+|hf[nf][0-9a-f]{8}) |\b10\.77\.0\.|^table netdev (port\d+|probe)`)

// left is what is new, and ours.
func left(before, after []string) []string {
	return slices.DeleteFunc(after, func(one string) bool { return slices.Contains(before, one) || !ours.MatchString(one) })
}
