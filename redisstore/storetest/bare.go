package storetest

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-rtc/holdfast/internal/tool"
)

// Bare sends a claim's command and nothing else: what a placement costs above it is ours.
type Bare struct{ client redis.Cmdable }

// NewBare sends commands one by one.
func NewBare(t testing.TB, server Server, callers int) Bare {
	t.Helper()
	return Bare{client: bareClient(t, server, callers)}
}

// NewBareBatched uses the library's automatic pipelining: up to 300 commands, one batch under way.
func NewBareBatched(t testing.TB, server Server, callers int) Bare {
	t.Helper()
	batched, err := bareClient(t, server, callers).AutoPipeline()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = batched.Close() })
	return Bare{client: batched}
}

func bareClient(t testing.TB, server Server, callers int) *redis.Client {
	t.Helper()
	options, err := redis.ParseURL(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	options.Protocol, options.DisableIdentity, options.PoolSize = 2, true, max(callers, 1)
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Claim is SET key value NX GET EX 3600.
func (b Bare) Claim(ctx context.Context, key, value string) error {
	err := b.client.SetArgs(ctx, key, value, redis.SetArgs{Mode: "NX", Get: true, TTL: time.Hour}).Err()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

// BenchmarkServer runs redis-benchmark with that command, and returns commands per second.
func BenchmarkServer(t testing.TB, server Server, callers, commands int, value string) float64 {
	t.Helper()
	program := tool.Find(t, "redis-benchmark")
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	host, port, err := net.SplitHostPort(at.Host)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program, "-h", host, "-p", port, "-c", strconv.Itoa(callers), "-n", strconv.Itoa(commands),
		"-r", "1000000", "--csv", "SET", "bench:__rand_int__", value, "NX", "GET", "EX", "3600").CombinedOutput()
	if err != nil {
		t.Fatalf("redis-benchmark: %v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	fields := strings.Split(lines[len(lines)-1], `","`)
	if len(fields) < 2 {
		t.Fatalf("redis-benchmark said %s", out)
	}
	perSecond, err := strconv.ParseFloat(strings.Trim(fields[1], `"`), 64)
	if err != nil {
		t.Fatalf("redis-benchmark said %s", out)
	}
	return perSecond
}
