package storetest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Process is one redis-server of a set.
type Process struct {
	Address string
	start   func() *exec.Cmd
	running *exec.Cmd
}

// Kill ends the process as a crash would, and returns when it is gone.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	if p.running == nil {
		return
	}
	if err := p.running.Process.Signal(syscall.SIGKILL); err != nil {
		t.Errorf("kill the server at %s: %v", p.Address, err)
	}
	_ = p.running.Wait() // It was killed, and says so.
	p.running = nil
}

// Restart starts a killed process again on its address, empty, and returns when it answers.
func (p *Process) Restart(t testing.TB) {
	t.Helper()
	p.running = p.start()
	if err := p.running.Start(); err != nil {
		p.running = nil
		t.Fatalf("start a server at %s: %v", p.Address, err)
	}
	wait(t, p.Address+" to answer", func(ctx context.Context) error { return ping(ctx, p.Address) })
}

// Fleet is a set of servers behind one URL.
type Fleet struct {
	Server

	Processes []*Process // of data; the master first
}

// StartAlone runs one redis-server that a test may kill and restart.
func StartAlone(t testing.TB) Fleet {
	t.Helper()
	one := process(t)
	raw := redis.NewClient(&redis.Options{Addr: one.Address, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = raw.Close() })
	return Fleet{Server: Server{Name: "redis", URL: "redis://" + one.Address, Raw: raw}, Processes: []*Process{one}}
}

// StartSentinel runs a master, a replica of it and three Sentinels that watch them.
func StartSentinel(t testing.TB) Fleet {
	t.Helper()
	one := process(t)
	host, port, _ := net.SplitHostPort(one.Address)
	two := process(t, "--replicaof", host+" "+port, "--repl-diskless-sync-delay", "0")
	var sentinels []string
	for range 3 {
		config := fmt.Sprintf("sentinel monitor house %s %s 2\nsentinel down-after-milliseconds house 1000\n"+
			"sentinel failover-timeout house 5000\nsentinel parallel-syncs house 1\n", host, port)
		sentinels = append(sentinels, processOf(t, config, "--sentinel").Address)
	}
	wait(t, "the Sentinels to know each other and the replica", func(ctx context.Context) error {
		for _, at := range sentinels {
			if err := knowsAll(ctx, at); err != nil {
				return err
			}
		}
		return nil
	})
	raw := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "house", SentinelAddrs: sentinels, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = raw.Close() })
	return Fleet{
		Server:    Server{Name: "sentinel", URL: "redis+sentinel://" + strings.Join(sentinels, ",") + "/house", Raw: raw},
		Processes: []*Process{one, two},
	}
}

// knowsAll fails until a Sentinel sees the replica and both other Sentinels.
func knowsAll(ctx context.Context, address string) error {
	client := redis.NewSentinelClient(&redis.Options{Addr: address, Protocol: 2, DisableIdentity: true})
	defer func() { _ = client.Close() }()
	state, err := client.Master(ctx, "house").Result()
	if err != nil {
		return err
	}
	if state["num-slaves"] != "1" || state["num-other-sentinels"] != "2" || state["flags"] != "master" {
		return fmt.Errorf("%s sees %s replicas, %s Sentinels, flags %s", address, state["num-slaves"], state["num-other-sentinels"], state["flags"])
	}
	return nil
}

// StartCluster runs a Redis Cluster of three masters without replicas.
func StartCluster(t testing.TB) Fleet {
	t.Helper()
	var all []*Process
	var addresses []string
	ports := make([]string, 3)
	for i := range ports {
		ports[i] = freePort(t)
		p := process(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no", "--cluster-port", ports[i])
		all, addresses = append(all, p), append(addresses, p.Address)
	}
	ctx := t.Context()
	for i, p := range all {
		client := redis.NewClient(&redis.Options{Addr: p.Address, Protocol: 2, DisableIdentity: true})
		first, last := i*16384/3, (i+1)*16384/3-1
		err := client.ClusterAddSlotsRange(ctx, first, last).Err()
		for j, other := range all {
			if host, port, _ := net.SplitHostPort(other.Address); j != i && err == nil {
				err = client.Do(ctx, "cluster", "meet", host, port, ports[j]).Err()
			}
		}
		_ = client.Close()
		if err != nil {
			t.Fatalf("join %s to the cluster: %v", p.Address, err)
		}
	}
	wait(t, "the cluster to be whole", func(ctx context.Context) error {
		for _, at := range addresses {
			if err := whole(ctx, at); err != nil {
				return err
			}
		}
		return nil
	})
	raw := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addresses, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = raw.Close() })
	return Fleet{Server: Server{Name: "cluster", URL: "redis+cluster://" + strings.Join(addresses, ","), Raw: raw}, Processes: all}
}

// whole fails until a server sees all slots covered by three masters.
func whole(ctx context.Context, address string) error {
	client := redis.NewClient(&redis.Options{Addr: address, Protocol: 2, DisableIdentity: true})
	defer func() { _ = client.Close() }()
	state, err := client.ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	if !strings.Contains(state, "cluster_state:ok") || !strings.Contains(state, "cluster_slots_ok:16384") || !strings.Contains(state, "cluster_size:3") {
		return fmt.Errorf("%s says %s", address, state)
	}
	return nil
}

// process runs a redis-server without persistence until the test ends.
func process(t testing.TB, args ...string) *Process {
	t.Helper()
	return processOf(t, "save \"\"\nappendonly no\n", args...)
}

// processOf runs a redis-server with a configuration file on a free port of loopback.
func processOf(t testing.TB, config string, args ...string) *Process {
	t.Helper()
	binary, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("redis-server is not installed, and CI=true demands the real store: %v", err)
		}
		t.Skipf("NOT TESTED against a real store: redis-server is not installed: %v", err)
	}
	dir, port := t.TempDir(), freePort(t)
	file := filepath.Join(dir, "redis.conf")
	config += "bind 127.0.0.1\nport " + port + "\ndir " + dir + "\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &Process{Address: net.JoinHostPort("127.0.0.1", port)}
	p.start = func() *exec.Cmd { return exec.Command(binary, append([]string{file}, args...)...) }
	t.Cleanup(func() { p.Kill(t) })
	p.Restart(t)
	return p
}

func freePort(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

func ping(ctx context.Context, address string) error {
	client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1, DialerRetries: 1, Protocol: 2, DisableIdentity: true})
	defer func() { _ = client.Close() }()
	return client.Ping(ctx).Err()
}

// wait waits until ok returns nil, a minute at most.
func wait(t testing.TB, what string, ok func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for {
		err := ok(ctx)
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("waited a minute for %s: %v", what, err)
		case <-every.C:
		}
	}
}
