package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/internal/tool"
)

// Process is one redis-server.
type Process struct {
	Address string
	papers  *papers
	start   func() *exec.Cmd
	running *exec.Cmd
	ended   <-chan error // of running
}

// Kill returns when it is gone, as by a crash.
func (p *Process) Kill(t testing.TB) {
	t.Helper()
	if p.running == nil {
		return
	}
	if err := p.running.Process.Signal(syscall.SIGKILL); err != nil {
		t.Errorf("kill the server at %s: %v", p.Address, err)
	}
	<-p.ended //nolint:errcheck // It was killed, and says so.
	p.running = nil
}

// Restart starts a killed process on its address, empty, and returns when it answers.
func (p *Process) Restart(t testing.TB) {
	t.Helper()
	cmd := p.start()
	ended, err := startTied(cmd)
	if err != nil {
		t.Fatalf("start a server at %s: %v", p.Address, err)
	}
	p.running, p.ended = cmd, ended
	wait(t, p.Address+" to answer", p.ping)
}

func (p *Process) ping(ctx context.Context) error {
	client := p.client()
	defer func() { _ = client.Close() }()
	return client.Ping(ctx).Err()
}

func (p *Process) client() *redis.Client { return redis.NewClient(p.options()) }

func (p *Process) options() *redis.Options {
	return &redis.Options{Addr: p.Address, MaxRetries: -1, DialerRetries: 1, Protocol: 2, DisableIdentity: true, TLSConfig: p.papers.tls()}
}

// How soon others are served after its return is measured from its first answer.
const pingEvery = 5 * time.Millisecond

const data = "save \"\"\nappendonly no\n"

// launch runs a redis-server on a free port of loopback until the test ends.
func launch(t testing.TB, papers *papers, config string, args ...string) *Process {
	t.Helper()
	return launchIn(t, papers, nil, config, args...)
}

// launchIn has another environment; nil: ours.
func launchIn(t testing.TB, papers *papers, environment []string, config string, args ...string) *Process {
	t.Helper()
	binary := tool.Find(t, "redis-server")
	dir, port := t.TempDir(), freePort(t)
	file := filepath.Join(dir, "redis.conf")
	config += "bind 127.0.0.1\ndir " + dir + "\n" + papers.listen(port)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &Process{Address: net.JoinHostPort("127.0.0.1", port), papers: papers}
	p.start = func() *exec.Cmd {
		cmd := exec.Command(binary, append([]string{file}, args...)...)
		cmd.Env = environment
		return cmd
	}
	t.Cleanup(func() { p.Kill(t) })
	p.Restart(t)
	return p
}

// freePort is below those that the kernel gives to whoever asks for any: one could be taken before the server
// listens, or while it is dead.
func freePort(t testing.TB) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(10_000 + rand.IntN(20_000))
		if listener, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			_ = listener.Close()
			return port
		}
	}
	t.Fatal("no port of a hundred is free")
	return ""
}

func wait(t testing.TB, what string, ok func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	every := time.NewTicker(pingEvery)
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

// BecomesReplica waits until the server follows a master.
func (p *Process) BecomesReplica(t testing.TB) {
	t.Helper()
	wait(t, p.Address+" to become a replica", func(ctx context.Context) error {
		client := p.client()
		defer func() { _ = client.Close() }()
		state, err := client.Info(ctx, "replication").Result()
		if err == nil && !strings.Contains(state, "role:slave") {
			err = errStillMaster
		}
		return err
	})
}

var errStillMaster = errors.New("it says that it is a master")
