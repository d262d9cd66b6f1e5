package balancer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/internal/readiness"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait; nothing here takes more than milliseconds when it works.
const patience = 60 * time.Second

// greeter is a backend that greets with its name and echoes what follows, until
// the client's half-close; then it says goodbye.
func greeter(t *testing.T, name string) string {
	t.Helper()
	l := listen(t)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				fmt.Fprintln(conn, name)
				io.Copy(conn, conn)
				fmt.Fprint(conn, "goodbye")
			})
		}
	})
	t.Cleanup(func() { l.Close(); running.Wait() })
	return l.Addr().String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// balance serves a balancer until the test ends and returns its address.
func balance(t *testing.T, change func(*Config), backends ...string) string {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Backends, cfg.CheckEvery = backends, 0
	if change != nil {
		change(&cfg)
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	l := listen(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- New(cfg, slog.New(slog.DiscardHandler)).Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Serve ended with %v", err)
			}
		case <-time.After(patience):
			t.Error("Serve did not end")
		}
	})
	return l.Addr().String()
}

func dial(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return conn.(*net.TCPConn)
}

// greeting is the name of the backend that a new connection gets.
func greeting(t *testing.T, address string) string {
	t.Helper()
	line, err := bufio.NewReader(dial(t, address)).ReadString('\n')
	if err != nil {
		t.Fatalf("no backend greeted: %v", err)
	}
	return strings.TrimSpace(line)
}

func deadAddress(t *testing.T) string {
	t.Helper()
	l := listen(t)
	defer l.Close()
	return l.Addr().String()
}

func TestConnectionsAreSpreadInTurn(t *testing.T) {
	address := balance(t, nil, greeter(t, "a"), greeter(t, "b"), greeter(t, "c"))
	got := map[string]int{}
	for range 9 {
		got[greeting(t, address)]++
	}
	if min(got["a"], got["b"], got["c"]) < 2 {
		t.Errorf("nine connections went to %v, want about three each", got)
	}
}

// Every second connection goes to the node with the fewest sockets: its last answer, plus the connections sent there since. The
// other connections rotate, because otherwise a node that refuses at once would get every client that tries again.
func TestTheLeastBurdenedBackendIsFirst(t *testing.T) {
	var counts [3]atomic.Int64
	var backends []string
	for i := range counts {
		node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(readiness.SocketsHeader, strconv.FormatInt(counts[i].Load(), 10))
		}))
		t.Cleanup(node.Close)
		backends = append(backends, strings.TrimPrefix(node.URL, "http://"))
	}
	said := []int64{6, 1, 3} // none is 0, which is what a backend has before its node has answered
	for i, n := range said {
		counts[i].Store(n)
	}
	cfg := DefaultConfig()
	cfg.Backends = backends
	b := New(cfg, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	t.Cleanup(watching.Wait)
	t.Cleanup(cancel)
	for _, backend := range b.backends {
		watching.Go(func() { backend.watch(ctx, time.Hour, b.log) })
	}
	testkit.Eventually(t, "the nodes to be counted", func() bool {
		counted := 0
		for i, backend := range b.backends {
			if backend.sockets.Load() == said[i] {
				counted++
			}
		}
		return counted == len(said)
	})
	for range 12 { // 6 by count and 2 each in turn: 6 1 3 becomes 8 7 7, or nearly so
		conn, _, err := b.dial(ctx)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
	}
	for i, backend := range b.backends {
		if got := backend.sockets.Load(); got < 7 || got > 8 {
			t.Errorf("backend %d has %d sockets, want 7 or 8 each", i, got)
		}
	}
}

func TestADeadBackendIsPassedOver(t *testing.T) {
	address := balance(t, nil, deadAddress(t), greeter(t, "alive"))
	for range 6 {
		if got := greeting(t, address); got != "alive" {
			t.Errorf("greeted by %q", got)
		}
	}
}

// TestBackendsThatAreDownAreLoggedAFewTimes: strangers choose how often they connect.
func TestBackendsThatAreDownAreLoggedAFewTimes(t *testing.T) {
	const connections = 200
	var said bytes.Buffer
	cfg := DefaultConfig()
	cfg.Backends = []string{deadAddress(t)}
	b := New(cfg, slog.New(slog.NewTextHandler(&said, nil)))
	before := time.Now()
	for range connections {
		client, _ := net.Pipe()
		b.carry(t.Context(), client)
	}
	most := failureLogBurst + int(time.Since(before).Seconds())*failureLogsPerSecond + 1
	if lines := strings.Count(said.String(), "no backend answers"); lines == 0 || lines > most {
		t.Errorf("%d connections made %d lines, want %d at most", connections, lines, most)
	}
}

func TestHalfCloseAndBytesPassBothWays(t *testing.T) {
	conn := dial(t, balance(t, nil, greeter(t, "echo")))
	text := strings.Repeat("holdfast ", 100_000)
	go func() {
		io.WriteString(conn, text)
		conn.CloseWrite()
	}()
	got, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	if want := "echo\n" + text + "goodbye"; string(got) != want {
		t.Errorf("read %d bytes, want %d: the answer after the half-close must arrive", len(got), len(want))
	}
}

// TestAFrozenBackendGetsNothing: the kernel of a frozen process goes on accepting,
// so only the check can tell.
func TestAFrozenBackendGetsNothing(t *testing.T) {
	frozen := listen(t) // nobody accepts
	t.Cleanup(func() { frozen.Close() })
	var ready atomic.Bool
	well := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		ready.Store(true)
		io.WriteString(w, "well")
	}))
	t.Cleanup(well.Close)
	b := New(Config{
		Backends:       []string{frozen.Addr().String(), strings.TrimPrefix(well.URL, "http://")},
		MaxConnections: 40, DialTimeout: time.Second, CheckEvery: 200 * time.Millisecond,
	}, slog.New(slog.DiscardHandler))
	l := listen(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Serve(ctx, l) }()
	t.Cleanup(func() { cancel(); <-ended })
	testkit.Eventually(t, "the frozen backend to be found out", func() bool { return !b.backends[0].ready() })
	for range 4 {
		client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Get("http://" + l.Addr().String() + "/")
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	if !ready.Load() || !b.backends[1].ready() {
		t.Error("the well backend is not used")
	}
}

func TestPastTheLimitAConnectionIsClosed(t *testing.T) {
	address := balance(t, func(c *Config) { c.MaxConnections = 1 }, greeter(t, "a"))
	first := dial(t, address)
	if line, err := bufio.NewReader(first).ReadString('\n'); err != nil || line != "a\n" {
		t.Fatalf("the first connection got %q, %v", line, err)
	}
	if n, err := dial(t, address).Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("the second connection got %d bytes, %v; want a closed one", n, err)
	}
	first.Close()
	testkit.Eventually(t, "the place to be free again", func() bool {
		line, err := bufio.NewReader(dial(t, address)).ReadString('\n')
		return err == nil && line == "a\n"
	})
}

// One host that stays after its request leaves places to others.
func TestOneHostTakesAQuarterOfThePlaces(t *testing.T) {
	node := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(node.Close)
	address := balance(t, func(c *Config) { c.MaxConnections = 8 }, strings.TrimPrefix(node.URL, "http://"))
	ask := func(conn net.Conn) error {
		fmt.Fprint(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		_, err := bufio.NewReader(conn).ReadString('\n')
		return err
	}
	for i := range 2 {
		if err := ask(dial(t, address)); err != nil {
			t.Fatalf("connection %d of a host: %v", i+1, err)
		}
	}
	if err := ask(dial(t, address)); err == nil {
		t.Error("the third connection of a host is served")
	}
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	other, err := dialer.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { other.Close() })
	other.SetDeadline(time.Now().Add(patience))
	if err := ask(other); err != nil {
		t.Errorf("the connection of another host: %v", err)
	}
}

func TestTheEndClosesOpenConnections(t *testing.T) {
	l := listen(t)
	ctx, cancel := context.WithCancel(context.Background())
	cfg := DefaultConfig()
	cfg.Backends, cfg.CheckEvery = []string{greeter(t, "a")}, 0
	ended := make(chan error, 1)
	go func() { ended <- New(cfg, slog.New(slog.DiscardHandler)).Serve(ctx, l) }()
	conn := dial(t, l.Addr().String())
	if _, err := bufio.NewReader(conn).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("Serve ended with %v", err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the open connection read %v, want its end", err)
	}
}

func TestValidateListsEveryFault(t *testing.T) {
	err := Config{Backends: []string{"nonsense"}}.Validate()
	for _, want := range []string{"nonsense", "limit of connections", "dial time-out"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the faults do not mention %q: %v", want, err)
		}
	}
	if err := (Config{MaxConnections: 1, DialTimeout: 1}).Validate(); err == nil {
		t.Error("a balancer without backends was accepted")
	}
}

// The backend is told the client's address before the connection's first byte.
func TestTheBackendIsToldWhomItServes(t *testing.T) {
	l := listen(t)
	defer l.Close()
	front := balance(t, func(c *Config) { c.ProxyProtocol = true }, l.Addr().String())
	client := dial(t, front)
	fmt.Fprint(client, "hello")
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	reader := bufio.NewReader(conn)
	header, err := proxyproto.Read(reader)
	if err != nil {
		t.Fatal(err)
	}
	if header.Version != 2 || header.SourceAddr.String() != client.LocalAddr().String() || header.DestinationAddr.String() != front {
		t.Errorf("the header is %+v, of %s", header, client.LocalAddr())
	}
	said := make([]byte, 5)
	if _, err := io.ReadFull(reader, said); err != nil || string(said) != "hello" {
		t.Errorf("then came %q, %v", said, err)
	}
}
