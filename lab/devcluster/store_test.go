//go:build !node

package devcluster

import (
	"bufio"
	"context"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/internal/tool"
)

// openStore runs an embedded store until the test ends, and returns its address.
func openStore(t *testing.T) string {
	t.Helper()
	s, err := OpenStore("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return s.Address()
}

func askOK(t *testing.T, address string, command ...string) []string {
	t.Helper()
	said, err := askRedis(t.Context(), address, command...)
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	return said
}

// TestTheStoreForgetsWithTime: miniredis expires keys only when told to.
func TestTheStoreForgetsWithTime(t *testing.T) {
	address := openStore(t)
	askOK(t, address, "SET", "k", "v", "PX", "300")
	testkit.Eventually(t, "the key to expire", func() bool { return askOK(t, address, "EXISTS", "k")[0] == "0" })
}

// TestTheStoresClockSteps: what expires within the step is gone, the rest stays, and scripts and INFO tell the new time.
func TestTheStoresClockSteps(t *testing.T) {
	address := openStore(t)
	askOK(t, address, "SET", "short", "1", "PX", "600000")
	askOK(t, address, "SET", "long", "1", "PX", "7200000")
	tells := func() time.Duration {
		t.Helper()
		said := askOK(t, address, "EVAL", "local t = redis.call('TIME') return {t[1] .. ''}", "0")
		at, err := time.ParseDuration(said[0] + "s")
		if err != nil {
			t.Fatal(err)
		}
		return (at - time.Duration(time.Now().Unix())*time.Second).Round(time.Minute)
	}
	askOK(t, address, commandStep, "3600000")
	if got := tells(); got != time.Hour {
		t.Errorf("the clock is %s ahead, want an hour", got)
	}
	if short, long := askOK(t, address, "EXISTS", "short"), askOK(t, address, "EXISTS", "long"); short[0] != "0" || long[0] != "1" {
		t.Errorf("short is there %v, long %v", short, long)
	}
	askOK(t, address, "SET", "during", "1", "PX", "60000")
	askOK(t, address, commandStep, "-3600000")
	if got := tells(); got != 0 {
		t.Errorf("the clock is %s ahead, want none", got)
	}
	if lives := askOK(t, address, "TTL", "during"); len(lives[0]) < len("3600") {
		t.Errorf("what was set during the step lives for %v s, want above an hour", lives)
	}
	info := askOK(t, address, "INFO", "server", "memory")[0]
	for _, want := range []string{"run_id:", "server_time_usec:", "maxmemory_policy:noeviction", "role:master"} {
		if !strings.Contains(info, want) {
			t.Errorf("INFO has no %s: %s", want, info)
		}
	}
	if _, err := askRedis(t.Context(), address, commandStep, "soon"); err == nil {
		t.Error("a step of no number was taken")
	}
}

// TestTheStoresConnectionsBreak, and what is stored stays.
func TestTheStoresConnectionsBreak(t *testing.T) {
	address := openStore(t)
	askOK(t, address, "SET", "key", "value")
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	askOK(t, address, commandBreak)
	if _, err := bufio.NewReader(conn).ReadByte(); err == nil {
		t.Error("the connection said something, want its end")
	}
	if got := askOK(t, address, "GET", "key"); !slices.Equal(got, []string{"value"}) {
		t.Errorf("the key is %v", got)
	}
}

// TestSentinelsLeadToTheStore, know who is attached to them, and end with their supervisor.
func TestSentinelsLeadToTheStore(t *testing.T) {
	tool.Find(t, "redis-server")
	c := start(t, Options{SFU: 1, Signaling: 1, Sentinels: 3})
	clients, sentinels := 0, 0
	for _, n := range status(t, c).Nodes {
		if n.Role != RoleSentinel {
			continue
		}
		sentinels++
		count, err := c.SentinelClients(t.Context(), n, running(status(t, c), RoleSignaling))
		if err != nil {
			t.Fatal(err)
		}
		clients += count
	}
	if sentinels != 3 || clients == 0 {
		t.Errorf("%d Sentinels have %d clients, want 3 and some", sentinels, clients)
	}
	all := pids(t, c)
	if err := c.KillSupervisor(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "all processes to end", func() bool { return !slices.ContainsFunc(all, func(pid int) bool { return !gone(pid) }) })
}
