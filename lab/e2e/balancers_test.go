//go:build long && linux

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/internal/child"
	"github.com/holdfast-rtc/holdfast/internal/tool"
	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// crowd are users who are online through a balancer, and come back when their socket is ended.
type crowd struct {
	c    *devcluster.Cluster
	ctx  context.Context
	url  string
	came int
	back atomic.Int64 // how often somebody came back

	mu    sync.Mutex
	conns map[int]*websocket.Conn // guarded by mu
}

func (g *crowd) come(t *testing.T, n int) {
	t.Helper()
	for range n {
		user := g.came
		g.came++
		var conn *websocket.Conn
		eventually(t, time.Minute, "a socket opens", func() (err error) { // A balancer may not have seen yet that a node is dead.
			conn, err = connectAt(g.ctx, g.c, g.url, fmt.Sprint("idle-", user))
			return err
		})
		go g.stay(user, conn)
	}
}

func (g *crowd) stay(user int, conn *websocket.Conn) {
	for {
		g.mu.Lock()
		g.conns[user] = conn
		g.mu.Unlock()
		for {
			if _, _, err := conn.Read(g.ctx); err != nil {
				break
			}
		}
		_ = conn.CloseNow()
		for {
			var err error
			if conn, err = connectAt(g.ctx, g.c, g.url, fmt.Sprint("idle-", user)); err == nil {
				break
			}
			if g.ctx.Err() != nil {
				return
			}
			time.Sleep(100 * time.Millisecond) //nolint:forbidigo // as the library does
		}
		g.back.Add(1)
	}
}

// talk pings on every socket, so often in turn.
func (g *crowd) talk(t *testing.T, times int) {
	t.Helper()
	for range times {
		g.mu.Lock()
		var all sync.WaitGroup
		for _, conn := range g.conns {
			all.Go(func() { _ = conn.Ping(g.ctx) })
		}
		g.mu.Unlock()
		all.Wait()
	}
}

func (g *crowd) counts(t *testing.T) (counts []int) {
	t.Helper()
	nodes, err := g.c.AdminNodes(g.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if n.Role == string(devcluster.RoleSignaling) {
			counts = append(counts, n.Sockets)
		}
	}
	return counts
}

// settled waits until all are connected, and returns where.
func (g *crowd) settled(t *testing.T, nodes int) (counts []int) {
	t.Helper()
	eventually(t, time.Minute, "all sockets are counted", func() error {
		counts = g.counts(t)
		sum := 0
		for _, n := range counts {
			sum += n
		}
		if len(counts) != nodes || sum != g.came {
			return fmt.Errorf("%v, want %d on %d nodes", counts, g.came, nodes)
		}
		return nil
	})
	return counts
}

// TestSocketsThroughBalancers has 1,000 idle sockets on two signaling nodes, adds a third, and has 500 more come: through
// our front, and through a haproxy that counts nothing and asks /readyz. It prints the evenness, and what a socket costs
// in both. In the end nodes with far more than the others send clients there.
func TestSocketsThroughBalancers(t *testing.T) {
	takes(t, atOnce)
	type cost struct{ memory, cpu float64 }
	costs := make(map[string]cost)
	for _, balancer := range []string{"front", "haproxy"} {
		t.Run(balancer, func(t *testing.T) {
			g, pid := startCrowd(t, balancer, nil)
			kill(t, g.c, "signaling-3")
			before := memory(t, pid)
			g.come(t, 1000)
			two := g.settled(t, 2)
			after, used := memory(t, pid), cpu(t, pid)
			g.talk(t, 20)
			costs[balancer] = cost{memory: float64(after-before) / 1000, cpu: float64((cpu(t, pid) - used).Microseconds()) / 20000}
			restart(t, g.c, "signaling-3")
			g.comesTo(t, 2)
			for g.came < 1500 { // No faster than a node may become overloaded.
				g.come(t, 5)
				time.Sleep(100 * time.Millisecond) //nolint:forbidigo // as people come
			}
			three := g.settled(t, 3)
			t.Logf("%s: 1000 sockets on two nodes %v; with 500 more on three %v; %.0f bytes a socket, %.1f us of CPU a ping and its pong", balancer, two, three, costs[balancer].memory, costs[balancer].cpu)
			if slices.Min(two) < 400 || slices.Max(three) > 650 || g.back.Load() > 0 {
				t.Errorf("on two %v, on three %v, %d sockets of living nodes were closed", two, three, g.back.Load())
			}
		})
	}
	front, haproxy := costs["front"], costs["haproxy"]
	t.Logf("our front beside haproxy: memory of a socket %.2f, CPU %.2f", front.memory/haproxy.memory, front.cpu/haproxy.cpu)
	t.Run("shedding", shedding)
}

// shedding: nobody new comes, and yet the sockets become even, each moved client once.
func shedding(t *testing.T) {
	shed := []string{"HOLDFAST_SHED=20"}
	g, _ := startCrowd(t, "front", map[string][]string{"signaling-1": shed, "signaling-2": shed, "signaling-3": shed})
	kill(t, g.c, "signaling-3")
	g.come(t, 1000)
	g.settled(t, 2)
	restart(t, g.c, "signaling-3", shed...)
	began, least := time.Now(), 0
	eventually(t, 3*time.Minute, "a third node has its share", func() error {
		counts := g.counts(t)
		least = slices.Min(counts)
		// No longer overloaded: (mean + few) * littleMore of signaling/leaving.go, by counts that are a second old.
		if bound := int((float64(g.came)/3 + 55) * 1.1); len(counts) != 3 || slices.Max(counts) > bound {
			return fmt.Errorf("%v", counts)
		}
		return nil
	})
	moved := g.back.Load()
	time.Sleep(5 * time.Second) //nolint:forbidigo // whether more are sent away
	t.Logf("shedding: even after %v: %v, %d clients moved", time.Since(began).Round(time.Second), g.settled(t, 3), moved)
	if now := g.back.Load(); now > moved+20 || least > 400 {
		t.Errorf("%d clients were moved, and %d when it was even", now, moved)
	}
}

// comesTo has people come until the node with that place in the list has somebody.
func (g *crowd) comesTo(t *testing.T, node int) {
	t.Helper()
	eventually(t, time.Minute, "the balancer knows the node", func() error {
		g.come(t, 1)
		if counts := g.counts(t); len(counts) <= node || counts[node] == 0 {
			return errors.New("it gets nothing yet")
		}
		return nil
	})
}

func startCrowd(t *testing.T, balancer string, env map[string][]string) (*crowd, int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	g := &crowd{c: startCluster(t, devcluster.Options{SFU: 1, Signaling: 3, NodeEnv: env}), ctx: ctx, conns: make(map[int]*websocket.Conn)}
	t.Cleanup(cancel)
	g.url = "ws" + strings.TrimPrefix(g.c.URL(), "http") + "ws"
	front, err := g.c.Pid(ctx, "front")
	if err != nil {
		t.Fatal(err)
	}
	if balancer == "front" {
		return g, front
	}
	var address string
	address, pid := startHaproxy(t, g.c)
	g.url = "ws://" + address + "/ws"
	return g, pid
}

// startHaproxy gives each new connection to the next signaling node that says it is ready.
func startHaproxy(t *testing.T, c *devcluster.Cluster) (address string, pid int) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	inherited, err := l.(*net.TCPListener).File() // A port given back could be another's by the time haproxy binds it.
	if err != nil {
		t.Fatal(err)
	}
	defer inherited.Close()
	address = l.Addr().String()
	config := "global\n  nbthread 1\n  maxconn 8000\ndefaults\n  mode tcp\n  timeout connect 2s\n  timeout client 1h\n  timeout server 1h\n" +
		"listen signaling\n  bind fd@3\n  balance roundrobin\n  option httpchk GET /readyz\n  default-server check inter 500ms fall 1 rise 1\n"
	for i := range 3 {
		node, err := c.Node(t.Context(), fmt.Sprint("signaling-", i+1))
		if err != nil {
			t.Fatal(err)
		}
		config += fmt.Sprintf("  server node%d %s\n", i, node.Addresses[child.AddressHTTP])
	}
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(tool.Find(t, "haproxy"), "-db", "-f", file) //nolint:gosec // a listed tool
	command.ExtraFiles = []*os.File{inherited}
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGKILL)
		_ = command.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	eventually(t, time.Minute, "haproxy listens", func() error {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err
	})
	return address, command.Process.Pid
}

// memory is what the process has of its own, in bytes.
func memory(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if kib, found := strings.CutPrefix(line, "Private_Dirty:"); found {
			n, err := strconv.ParseInt(strings.Fields(kib)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n << 10
		}
	}
	t.Fatalf("no figure in %s", text)
	return 0
}

func cpu(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var ticks int64
	for _, i := range []int{11, 12} { // utime, stime of proc_pid_stat(5)
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
