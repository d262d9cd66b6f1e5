package relay

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pion/logging"
	"github.com/pion/stun/v4"
	"github.com/pion/turn/v5"
	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/ring"
)

func TestMain(m *testing.M) {
	if media := os.Getenv(childEnv); media != "" {
		if err := serveAsChild(media); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

const patience = 30 * time.Second

var secret = []byte("0123456789abcdef0123456789abcdef")

func secrets() [][]byte { return [][]byte{secret} }

type views struct{ view *cluster.View }

func (v views) View() *cluster.View { return v.view }

// stage is a relay with a media node that sends every packet back.
type stage struct {
	t          *testing.T
	relay      *Relay
	media      *net.UDPConn
	other      *net.UDPConn // of the same host, and no media socket
	udp        string
	tcp, tls   string
	unanswered chan string // what other heard
}

func newStage(t *testing.T, change func(*Config)) *stage {
	t.Helper()
	s := &stage{t: t, unanswered: make(chan string, 100), media: udp(t), other: udp(t)}
	echo := func(conn *net.UDPConn, heard chan<- string) {
		buffer := make([]byte, 2000)
		for {
			n, from, err := conn.ReadFromUDP(buffer)
			if err != nil {
				return
			}
			if heard != nil {
				heard <- string(buffer[:n])
				continue
			}
			_, _ = conn.WriteToUDP(buffer[:n], from)
		}
	}
	go echo(s.media, nil)
	go echo(s.other, s.unanswered)
	config := DefaultConfig()
	config.Address, config.Secrets = netip.MustParseAddr("127.0.0.1"), secrets
	config.Panics = panics.New()
	config.Media = NewGossiped(views{&cluster.View{Nodes: map[ring.NodeID]cluster.Node{"sfu-1": {Media: s.media.LocalAddr().String()}}}})
	if change != nil {
		change(&config)
	}
	var err error
	if s.relay, err = New(config, slog.New(slog.NewTextHandler(t.Output(), nil))); err != nil {
		t.Fatal(err)
	}
	at := Listeners{UDP: udp(t), TCP: tcp(t), TLS: tls.NewListener(tcp(t), &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}, MinVersion: tls.VersionTLS12})}
	s.udp, s.tcp, s.tls = at.UDP.LocalAddr().String(), at.TCP.Addr().String(), at.TLS.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.relay.Run(ctx, at) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s
}

func udp(t *testing.T) *net.UDPConn {
	t.Helper()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func tcp(t *testing.T) net.Listener {
	t.Helper()
	lis, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return lis
}

func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"turn.example.org"}}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// client is a TURN client with these credentials, over the transport of the name.
func (s *stage) client(transport, user, pass string) *turn.Client {
	s.t.Helper()
	var conn net.PacketConn
	server := s.udp
	switch transport {
	case "udp":
		conn = udp(s.t)
	case "tcp":
		server = s.tcp
		stream, err := net.Dial("tcp", server)
		if err != nil {
			s.t.Fatal(err)
		}
		conn = turn.NewSTUNConn(stream)
	case "tls":
		server = s.tls
		stream, err := tls.Dial("tcp", server, &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			s.t.Fatal(err)
		}
		conn = turn.NewSTUNConn(stream)
	}
	client, err := turn.NewClient(&turn.ClientConfig{
		STUNServerAddr: server, TURNServerAddr: server, Conn: conn, Username: user, Password: pass,
		LoggerFactory: &logging.DefaultLoggerFactory{Writer: s.t.Output(), DefaultLogLevel: logging.LogLevelDisabled},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := client.Listen(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		client.Close()
		_ = conn.Close()
	})
	return client
}

func (s *stage) sessionClient(transport, session string) *turn.Client {
	given := (&Issuer{Secrets: secrets, Life: time.Hour}).Server(session, time.Time{}, time.Now())
	return s.client(transport, given.Username, given.Credential)
}

func (s *stage) allocate(client *turn.Client) net.PacketConn {
	s.t.Helper()
	conn, err := client.Allocate()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// comesBack sends until an answer comes.
func (s *stage) comesBack(conn net.PacketConn) {
	s.t.Helper()
	text := "to the media node and back"
	buffer := make([]byte, 2000)
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if _, err := conn.WriteTo([]byte(text), s.media.LocalAddr()); err != nil {
			s.t.Fatal(err)
		}
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			continue
		}
		if string(buffer[:n]) != text || from.String() != s.media.LocalAddr().String() {
			s.t.Fatalf("%q came from %v", buffer[:n], from)
		}
		return
	}
	s.t.Fatal("nothing came back from the media node")
}

func (s *stage) until(what string, holds func(Counters) bool) {
	s.t.Helper()
	testkit.Eventually(s.t, what, func() bool { return holds(s.relay.Counters()) })
}

func TestMediaIsRelayedOverEveryTransport(t *testing.T) {
	s := newStage(t, nil)
	for _, transport := range []string{"udp", "tcp", "tls"} {
		conn := s.allocate(s.sessionClient(transport, "p-"+transport))
		s.comesBack(conn)
	}
	if c := s.relay.Counters(); c.Allocations != 3 || c.BytesToMedia == 0 || c.BytesToClients == 0 || c.RefusedPeers+c.RefusedCredentials+c.RefusedAllocations != 0 {
		t.Fatalf("counted %+v", c)
	}
}

func TestNothingElseIsReached(t *testing.T) {
	s := newStage(t, nil)
	conn := s.allocate(s.sessionClient("udp", "p-eve"))
	for _, address := range []string{"127.0.0.2:6379", "10.0.0.1:7946", "192.0.2.7:80", "169.254.169.254:80"} {
		peer := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(address))
		if _, err := conn.WriteTo([]byte("psst"), peer); err == nil {
			t.Errorf("a packet to %s was taken", address)
		}
	}
	refused := s.relay.Counters().RefusedPeers
	if refused < 4 {
		t.Fatalf("%d refusals were counted, want one for each address", refused)
	}
	// Another port of the media node's host, as its control and gossip ports are.
	s.comesBack(conn)
	for s.relay.Counters().RefusedPeers == refused {
		_, _ = conn.WriteTo([]byte("psst"), s.other.LocalAddr())
	}
	s.comesBack(conn) // Packets of one client pass in order: that one would have come by now.
	select {
	case text := <-s.unanswered:
		t.Fatalf("another port of the media node's host got %q", text)
	default:
	}
	// It may not send to the client either.
	relayed := conn.LocalAddr()
	_, _ = s.other.WriteTo([]byte("psst"), relayed)
	s.until("a stray packet is counted", func(c Counters) bool { return c.Strays > 0 })
}

func TestCredentials(t *testing.T) {
	s := newStage(t, nil)
	now := time.Now()
	issuer := &Issuer{Secrets: secrets, Life: time.Hour}
	ada, eve := issuer.Server("p-ada", time.Time{}, now), issuer.Server("p-eve", time.Time{}, now)
	late := issuer.Server("p-ada", time.Time{}, now.Add(-2*time.Hour))
	foreign := (&Issuer{Secrets: func() [][]byte { return [][]byte{[]byte("another cluster's secret")} }, Life: time.Hour}).Server("p-ada", time.Time{}, now)
	for name, c := range map[string][2]string{
		"expired":                        {late.Username, late.Credential},
		"of another cluster":             {foreign.Username, foreign.Credential},
		"another session's, unlocked":    {ada.Username, eve.Credential},
		"another session's, renamed":     {strings.Replace(eve.Username, "p-eve", "p-ada", 1), eve.Credential},
		"prolonged":                      {strings.Replace(eve.Username, eve.Username[:3], "999", 1), eve.Credential},
		"without a session":              {"1", "x"},
		"of coturn's usual form, unsaid": {"99999999999:p-eve", password(secret, "99999999999:p-eve")},
	} {
		before := s.relay.Counters().RefusedCredentials
		if _, err := s.client("udp", c[0], c[1]).Allocate(); err == nil {
			t.Errorf("a credential %s was taken", name)
		}
		if s.relay.Counters().RefusedCredentials == before {
			t.Errorf("a credential %s was not counted", name)
		}
	}
	// A browser keeps the credential that it allocated with, and prolongs the allocation with it.
	request := &turn.RequestAttributes{Username: late.Username, Realm: realm, SrcAddr: &net.UDPAddr{}, Method: stun.MethodRefresh}
	if session, _, ok := s.relay.authenticate(request); !ok || session != "p-ada" {
		t.Error("an allocation cannot be prolonged with the credential that it was made with")
	}
	request.Username = issuer.Server("p-ada", time.Time{}, now.Add(-14*time.Hour)).Username
	if _, _, ok := s.relay.authenticate(request); ok {
		t.Error("an allocation can be prolonged for ever")
	}
}

func TestAKeyIsReplacedUnderWay(t *testing.T) {
	next := []byte("the next secret, of 32 bytes and more")
	s := newStage(t, func(c *Config) { c.Secrets = func() [][]byte { return [][]byte{next, secret} } })
	s.allocate(s.sessionClient("udp", "p-old"))
	given := (&Issuer{Secrets: func() [][]byte { return [][]byte{next} }, Life: time.Hour}).Server("p-new", time.Time{}, time.Now())
	s.allocate(s.client("udp", given.Username, given.Credential))
}

func TestAFloodOfAllocationsIsBounded(t *testing.T) {
	s := newStage(t, func(c *Config) { c.MaxAllocations, c.MaxSessionAllocations = 5, 3 })
	flood := func(session string, want int) {
		t.Helper()
		got := 0
		for range 6 {
			if conn, err := s.sessionClient("tcp", session).Allocate(); err == nil {
				got++
				t.Cleanup(func() { _ = conn.Close() })
			}
		}
		if got != want {
			t.Errorf("%s got %d allocations, want %d", session, got, want)
		}
	}
	flood("p-eve", 3)
	flood("p-mallory", 2)
	if c := s.relay.Counters(); c.Allocations != 5 || c.RefusedAllocations < 7 {
		t.Errorf("counted %+v", c)
	}
}

func TestAPlaceComesBack(t *testing.T) {
	s := newStage(t, func(c *Config) { c.MaxAllocations, c.IdleAfter = 1, 300*time.Millisecond })
	for _, transport := range []string{"udp", "tcp"} {
		s.allocate(s.sessionClient(transport, "p-idle")) // Nothing is sent over it.
		s.until("an idle allocation ends", func(c Counters) bool { return c.Allocations == 0 })
	}
}

// TestAnAllocationEndsWithASessionThatEnds, though packets pass all the time, and counts for the same session as all others.
func TestAnAllocationEndsWithASessionThatEnds(t *testing.T) {
	s := newStage(t, func(c *Config) { c.MaxSessionAllocations = 2 })
	issuer := &Issuer{Secrets: secrets, Life: time.Hour}
	s.allocate(s.sessionClient("udp", "p-ada"))
	for _, transport := range []string{"udp", "tcp"} {
		// A busy machine may not allocate before a short credential expires.
		for lasts := 2 * time.Second; ; lasts *= 2 {
			ends := time.Now().Add(lasts)
			given := issuer.Server("p-ada", ends, time.Now())
			client := s.client(transport, given.Username, given.Credential)
			conn, err := client.Allocate()
			if err != nil && lasts < patience {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			if _, err := s.sessionClient(transport, "p-ada").Allocate(); err == nil && time.Now().Before(ends) {
				t.Error("a session has more allocations than it may, by the side of one that ends")
			}
			s.until("it ends", func(c Counters) bool {
				_, _ = conn.WriteTo([]byte("hello"), s.media.LocalAddr())
				return c.Allocations == 1
			})
			if time.Now().Before(ends.Truncate(time.Second)) {
				t.Errorf("it ended before its time, %v", ends)
			}
			request := &turn.RequestAttributes{Username: given.Username, Realm: realm, SrcAddr: &net.UDPAddr{}, Method: stun.MethodRefresh}
			if _, _, ok := s.relay.authenticate(request); ok {
				t.Error("it may be prolonged after its end")
			}
			break
		}
	}
}

func TestBytesAreBounded(t *testing.T) {
	s := newStage(t, func(c *Config) { c.BytesPerSecond = 4000 })
	conn := s.allocate(s.sessionClient("udp", "p-eve"))
	s.comesBack(conn)
	for range 20 {
		_, _ = conn.WriteTo(make([]byte, 1200), s.media.LocalAddr())
	}
	s.until("packets above the rate are dropped", func(c Counters) bool { return c.DroppedPackets > 0 })
}

func TestAConnectionWithoutAnAllocationEnds(t *testing.T) {
	s := newStage(t, func(c *Config) { c.PendingLimit = 200 * time.Millisecond })
	for name, address := range map[string]string{"tcp": s.tcp, "tls": s.tls} {
		silent, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = silent.SetReadDeadline(time.Now().Add(patience))
		if _, err := silent.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
			t.Errorf("a silent connection over %s: %v, want its end", name, err)
		}
		_ = silent.Close()
	}
	conn := s.allocate(s.sessionClient("tcp", "p-ada"))
	for begun := time.Now(); time.Since(begun) < 2*s.relay.config.PendingLimit; {
		s.comesBack(conn)
	}
}

// TestAFrameWhoseLengthOverflows: Pion alone takes it for one of 0 bytes, again and again.
func TestAFrameWhoseLengthOverflows(t *testing.T) {
	s := newStage(t, nil)
	for _, frame := range []string{"\x40\x00\xff\xfc12345678", "\x00\x01\xff\xec\x21\x12\xa4\x42123456789012", "GET / HTTP/1.1\r\n\r\n", "\x40\x00\x07\xd012345678"} {
		conn, err := net.Dial("tcp", s.tcp)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = conn.Write([]byte(frame))
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		if _, err := conn.Read(make([]byte, 100)); err == nil || strings.Contains(err.Error(), "timeout") {
			t.Errorf("after %q: %v, want the end of the connection", frame, err)
		}
		_ = conn.Close()
	}
	if c := s.relay.Counters(); c.RefusedFrames != 4 {
		t.Errorf("counted %+v", c)
	}
}
