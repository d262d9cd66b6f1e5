// Package storetest starts the stores that tests run against, and holds the contract that
// every store of pins must keep. Only tests import it.
package storetest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/internal/tool"
)

// Server is one empty store, reached by URL.
type Server struct {
	Name string // "miniredis", "redis", "sentinel" or "cluster"
	URL  string
	// Raw speaks to the store directly, to do what no Store would: damage a
	// value, let a key expire, flush everything.
	Raw redis.UniversalClient
}

// patience keeps a machine that is busy with other tests from failing this one: no
// test here is about the time-outs of a store that works.
const patience = "?dial_timeout=20s&read_timeout=20s&write_timeout=20s&pool_timeout=20s"

// Kinds are the names Start takes.
func Kinds() []string { return []string{"miniredis", "redis"} }

// Start runs an empty store of the given kind until the test ends. Where redis-server is not
// installed the test is skipped with the reason, or fails when CI=true.
func Start(t testing.TB, kind string) Server {
	t.Helper()
	var address string
	if kind == "redis" {
		address = startRedis(t)
	} else {
		embedded := miniredis.RunT(t)
		address = embedded.Addr()
	}
	raw := redis.NewClient(&redis.Options{Addr: address, Protocol: 2, DisableIdentity: true})
	t.Cleanup(func() { _ = raw.Close() })
	return Server{Name: kind, URL: "redis://" + address + patience, Raw: raw}
}

// OnEach runs test once on each kind of store, each time on an empty one.
func OnEach(t *testing.T, test func(t *testing.T, server Server)) {
	t.Helper()
	for _, kind := range Kinds() {
		t.Run(kind, func(t *testing.T) { test(t, Start(t, kind)) })
	}
}

// startRedis runs a real redis-server on a free loopback port, without persistence.
func startRedis(t testing.TB) string {
	t.Helper()
	binary := tool.Find(t, "redis-server")
	for attempt := range 5 { // Another process may take the free port before the server does.
		address, output, err := tryRedis(t, binary)
		if err == nil {
			return address
		}
		t.Logf("redis-server, attempt %d: %v\n%s", attempt+1, err, output)
	}
	t.Fatal("redis-server did not start")
	return ""
}

// tryRedis starts the server once and waits until it answers.
func tryRedis(t testing.TB, binary string) (address, output string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	var log bytes.Buffer
	server := exec.Command(binary, "--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--save", "", "--appendonly", "no", "--dir", t.TempDir())
	server.Stdout, server.Stderr = &log, &log
	ended, err := startTied(server)
	if err != nil {
		return "", "", err
	}
	stop := func() {
		_ = server.Process.Kill()
		if err := <-ended; t.Failed() {
			t.Logf("redis-server ended: %v\n%s", err, log.String())
		}
	}
	address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err := answers(address, ended); err != nil {
		stop()
		return "", log.String(), err
	}
	t.Cleanup(stop)
	return address, "", nil
}

// answers waits until a server of ours answers PING at address.
func answers(address string, ended chan error) error {
	client := redis.NewClient(&redis.Options{Addr: address, MaxRetries: -1, DialerRetries: 1, Protocol: 2, DisableIdentity: true})
	defer func() { _ = client.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	every := time.NewTicker(20 * time.Millisecond)
	defer every.Stop()
	for {
		if client.Ping(ctx).Err() == nil {
			return nil
		}
		select {
		case err := <-ended:
			ended <- err // for stop
			return fmt.Errorf("it ended: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-every.C:
		}
	}
}
