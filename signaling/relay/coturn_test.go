package relay

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
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

	"github.com/pion/logging"
	"github.com/pion/turn/v5"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/tool"
	"github.com/holdfast-rtc/holdfast/ring"
)

// What BenchmarkBesideCoturn relays, each way of each busy client: a picture of six packets, 30 times a second.
const (
	idleClients, busyClients = 80, 20
	packetsAtOnce            = 6
	packetBytes              = 1100
	pace                     = time.Second / 30
	measured                 = 5 * time.Second
)

// cost is what relaying took one server.
type cost struct {
	cpu    float64 // us a packet
	memory float64 // KiB of an allocation
	bytes  float64 // on the client's side, a packet
	lost   int64
}

// BenchmarkBesideCoturn relays the same packets through our relay and through a coturn, in turns: each is a process of its own with
// its usual number of threads. It reports medians.
func BenchmarkBesideCoturn(b *testing.B) {
	coturn := tool.Find(b, "turnserver")
	for _, transport := range []string{"udp", "tcp"} {
		b.Run(transport, func(b *testing.B) {
			costs := map[string][]cost{}
			for range b.N {
				costs["ours"] = append(costs["ours"], relayThrough(b, transport, startOurs))
				costs["coturn"] = append(costs["coturn"], relayThrough(b, transport, func(b *testing.B, _ netip.AddrPort) *server { return startCoturn(b, coturn) }))
			}
			report := func(unit string, of func(cost) float64) {
				ours, theirs := median(costs["ours"], of), median(costs["coturn"], of)
				b.ReportMetric(ours, "ours-"+unit)
				b.ReportMetric(theirs, "coturn-"+unit)
				b.ReportMetric(ours/theirs, "ratio-"+unit)
			}
			report("us/packet", func(c cost) float64 { return c.cpu })
			report("KiB/allocation", func(c cost) float64 { return c.memory })
			report("bytes/packet", func(c cost) float64 { return c.bytes })
			for name, all := range costs {
				b.Logf("%s %s: %+v", transport, name, all)
				b.ReportMetric(median(all, func(c cost) float64 { return float64(c.lost) }), name+"-lost")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func median(all []cost, of func(cost) float64) float64 {
	var sorted []float64
	for _, c := range all {
		sorted = append(sorted, of(c))
	}
	slices.Sort(sorted)
	return (sorted[len(sorted)/2] + sorted[(len(sorted)-1)/2]) / 2
}

// relayThrough has the busy clients send and receive while the others are idle.
func relayThrough(b *testing.B, transport string, start func(*testing.B, netip.AddrPort) *server) (c cost) {
	b.Helper()
	media, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		b.Fatal(err)
	}
	_ = media.SetReadBuffer(4 << 20)
	relay := start(b, netip.MustParseAddrPort(media.LocalAddr().String()))
	defer relay.kill()
	empty := relay.private(b)
	var (
		sent, received, onWire atomic.Int64
		receiving              sync.WaitGroup
		clients                []*loadClient
	)
	receive := func(conn net.PacketConn) {
		buffer := make([]byte, 2000)
		for {
			n, _, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			if n == packetBytes {
				received.Add(1)
			}
		}
	}
	for i := range idleClients + busyClients {
		clients = append(clients, newLoadClient(b, transport, relay.address, i, &onWire))
	}
	c.memory = float64(relay.private(b)-empty) / 1024 / (idleClients + busyClients)
	clients = clients[:busyClients]
	receiving.Go(func() { receive(media) })
	for _, client := range clients {
		receiving.Go(func() { receive(client.relayed) })
	}
	burst := func() {
		packet := make([]byte, packetBytes)
		for _, client := range clients {
			for range packetsAtOnce {
				if _, err := client.relayed.WriteTo(packet, media.LocalAddr()); err == nil {
					sent.Add(1)
				}
				if _, err := media.WriteTo(packet, client.relayed.LocalAddr()); err == nil {
					sent.Add(1)
				}
			}
		}
	}
	ticks := time.NewTicker(pace)
	defer ticks.Stop()
	bursts := func(during time.Duration) {
		for range during / pace {
			<-ticks.C
			burst()
		}
		for last := int64(-1); last != received.Load(); <-ticks.C { // what is under way
			last = received.Load()
		}
	}
	bursts(2 * time.Second) // Channels are bound meanwhile.
	sent.Store(0)
	received.Store(0)
	onWire.Store(0)
	used := relay.cpu(b)
	bursts(measured)
	used = relay.cpu(b) - used
	c.cpu = float64(used.Nanoseconds()) / 1000 / float64(received.Load())
	c.bytes = float64(onWire.Load()) / float64(received.Load())
	c.lost = sent.Load() - received.Load()
	_ = media.Close()
	for _, client := range clients {
		client.close()
	}
	receiving.Wait()
	return c
}

// loadClient has an allocation.
type loadClient struct {
	conn    net.PacketConn
	client  *turn.Client
	relayed net.PacketConn
}

// counted counts bytes.
type counted struct {
	net.Conn
	bytes *atomic.Int64
}

func (c *counted) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	c.bytes.Add(int64(n))
	return n, err
}

func (c *counted) Write(from []byte) (int, error) {
	n, err := c.Conn.Write(from)
	c.bytes.Add(int64(n))
	return n, err
}

// datagrams is a connected UDP socket. A server that does not listen yet is asked again.
type datagrams struct{ net.Conn }

func (d datagrams) ReadFrom(into []byte) (int, net.Addr, error) {
	for {
		n, err := d.Read(into)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return n, d.RemoteAddr(), err
		}
	}
}

func (d datagrams) WriteTo(from []byte, _ net.Addr) (int, error) {
	n, err := d.Write(from)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return len(from), nil
	}
	return n, err
}

func newLoadClient(b *testing.B, transport, server string, number int, onWire *atomic.Int64) *loadClient {
	b.Helper()
	raw, err := net.Dial(transport, server)
	if err != nil {
		b.Fatal(err)
	}
	if udp, ok := raw.(*net.UDPConn); ok {
		_ = udp.SetReadBuffer(1 << 20)
	}
	c := &loadClient{}
	if transport == "tcp" {
		c.conn = turn.NewSTUNConn(&counted{raw, onWire})
	} else {
		c.conn = datagrams{&counted{raw, onWire}}
	}
	given := (&Issuer{Secrets: secrets, Life: time.Hour}).Server(fmt.Sprint("p-", number), time.Time{}, time.Now())
	c.client, err = turn.NewClient(&turn.ClientConfig{
		STUNServerAddr: server, TURNServerAddr: server, Conn: c.conn, Username: given.Username, Password: given.Credential,
		LoggerFactory: &logging.DefaultLoggerFactory{Writer: io.Discard, DefaultLogLevel: logging.LogLevelDisabled},
	})
	if err == nil {
		err = c.client.Listen()
	}
	if err == nil {
		c.relayed, err = c.client.Allocate()
	}
	if err != nil {
		b.Fatalf("client %d: %v", number, err)
	}
	b.Cleanup(c.close)
	return c
}

func (c *loadClient) close() {
	_ = c.relayed.Close()
	c.client.Close()
	_ = c.conn.Close()
}

// childEnv has this binary be a relay for the media socket that it names.
const childEnv = "HOLDFAST_TEST_RELAY_FOR"

// server is a process that relays.
type server struct {
	process *exec.Cmd
	address string
	killed  sync.Once
}

func (s *server) start(b *testing.B) {
	b.Helper()
	if err := s.process.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.kill)
}

func (s *server) kill() {
	s.killed.Do(func() {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
	})
}

func startOurs(b *testing.B, media netip.AddrPort) *server {
	b.Helper()
	s := &server{process: exec.Command(os.Args[0])}
	s.process.Env = append(os.Environ(), childEnv+"="+media.String())
	out, err := s.process.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	s.start(b)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	s.address = strings.TrimSpace(line)
	return s
}

// serveAsChild relays for a media socket until its process is killed.
func serveAsChild(media string) error {
	config := DefaultConfig()
	config.Address, config.Secrets = netip.MustParseAddr("127.0.0.1"), secrets
	config.Panics = panics.New()
	config.Media = NewGossiped(views{&cluster.View{Nodes: map[ring.NodeID]cluster.Node{"sfu-1": {Media: media}}}})
	relay, err := New(config, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	lis, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	conn, err := net.ListenPacket("udp4", lis.Addr().String())
	if err != nil {
		return err
	}
	fmt.Println(lis.Addr())
	return relay.Run(context.Background(), Listeners{UDP: conn, TCP: lis})
}

func startCoturn(b *testing.B, program string) *server {
	b.Helper()
	free, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	s := &server{address: free.Addr().String()}
	_, port, _ := net.SplitHostPort(s.address)
	_ = free.Close()
	dir := b.TempDir()
	var said bytes.Buffer
	s.process = exec.Command(program, "-n", "--listening-ip=127.0.0.1", "--relay-ip=127.0.0.1", "--listening-port="+port, "--realm="+realm,
		"--use-auth-secret", "--static-auth-secret="+string(secret), "--allow-loopback-peers", "--no-tls", "--no-dtls", "--no-cli",
		"--userdb="+filepath.Join(dir, "db"), "--pidfile="+filepath.Join(dir, "pid"), "--log-file=stdout", "--simple-log")
	s.process.Stdout, s.process.Stderr = &said, &said
	s.start(b)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) { //nolint:forbidigo // it does not say when it listens
		if conn, err := net.Dial("tcp", s.address); err == nil {
			_ = conn.Close()
			return s
		}
	}
	s.kill()
	b.Fatalf("coturn does not listen:\n%s", said.String())
	return nil
}

// cpu is the time of all threads.
func (s *server) cpu(b *testing.B) (sum time.Duration) {
	b.Helper()
	pid := s.process.Process.Pid
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		b.Fatal(errors.Join(err, fmt.Errorf("process %d has no threads", pid)))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		ns, err := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}

// private is the memory that the process has of its own, in bytes.
func (s *server) private(b *testing.B) int64 {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", s.process.Process.Pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "Private_Dirty:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return kib << 10
}
