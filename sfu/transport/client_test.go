package transport

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/dtls/v3/pkg/crypto/selfsign"
	"github.com/pion/rtp"
	"github.com/pion/srtp/v3"
	"github.com/pion/stun/v4"
	"github.com/pion/transport/v4/packetio"
	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the limit of every wait: generous, because the machine is shared.
const patience = 60 * time.Second

const theirPassword = "the-password-of-the-client"

// wire is a socket whose network is this process.
type wire struct {
	t       testing.TB
	in      chan datagram
	closed  chan struct{}
	at      egress.Address                  // of the transport; nothing unless the network is the kernel's
	sockets map[egress.Address]*net.UDPConn // of the clients then
	tcp     string                          // where they come by TCP; empty: they do not
	conns   map[egress.Address]net.Conn     // of the clients then

	mu            sync.Mutex // guards the fields below
	clients       map[egress.Address]*packetio.Buffer
	strays        int // packets for addresses where nobody is
	sent, longest int // datagrams, and bytes of the longest
}

type datagram struct {
	from egress.Address
	b    []byte
}

// newTransport runs a transport on a wire until the test ends.
func newTransport(t testing.TB) (*Transport, *wire) {
	t.Helper()
	w := &wire{t: t, in: make(chan datagram, 1024), closed: make(chan struct{}), clients: map[egress.Address]*packetio.Buffer{}}
	transport := New(w, panics.New(), slog.New(slog.DiscardHandler))
	ended := make(chan error, 1)
	go func() { ended <- transport.Run(t.Context()) }()
	t.Cleanup(func() {
		close(w.closed)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return transport, w
}

func (w *wire) Readers() int { return 1 }

func (w *wire) Receive(_ int, take func([]byte, egress.Address), _ func(egress.Address)) error {
	for {
		select {
		case d := <-w.in:
			take(d.b, d.from)
		case <-w.closed:
			return net.ErrClosed
		}
	}
}

func (w *wire) Close() error { return nil }

func (w *wire) Write(b []byte, to egress.Address) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent, w.longest = w.sent+1, max(w.longest, len(b))
	if client := w.clients[to]; client != nil {
		return client.Write(b)
	}
	w.strays++
	return len(b), nil
}

// sized returns how many datagrams were sent since the last call, and the length of the longest.
func (w *wire) sized() (n, longest int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, longest = w.sent, w.longest
	w.sent, w.longest = 0, 0
	return n, longest
}

func (w *wire) strayed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.strays
}

// address is a new one at which a client listens.
func (w *wire) address() (egress.Address, *packetio.Buffer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	arriving := packetio.NewBuffer()
	a := egress.UDP(netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), uint16(1000+len(w.clients))))
	switch {
	case w.tcp != "":
		a = w.dialTCP(arriving)
	case w.sockets != nil:
		a = w.dial(arriving)
	}
	w.clients[a] = arriving
	return a, arriving
}

// client is the other end of one connection.
type client struct {
	t    testing.TB
	wire *wire
	from egress.Address
	conn *Conn
	got  *recorder

	*packetio.Buffer // what comes for it, checks' answers and media left out

	answers chan *stun.Message
	media   chan []byte
	out     *srtp.Context
}

// recorder is a Handler that remembers.
type recorder struct {
	mu      sync.Mutex // guards the fields below
	streams map[uint32]int
	reports int
	states  []State
	moves   int
	// To tick, and to tell of a connection that is silent, panics.
	deadlyTick, deadlyState bool
	busy                    chan struct{} // not nil: hearing of a silence takes until it is closed
}

// deadlySSRC makes the recorder panic.
const deadlySSRC = 666

func (r *recorder) RTP(header *rtp.Header, _ []byte, _ time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if header.SSRC == deadlySSRC {
		panic("of a test")
	}
	r.streams[header.SSRC]++
}

func (r *recorder) RTCP([]byte, time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports++
}

func (r *recorder) Tick(time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deadlyTick {
		panic("of a test")
	}
}

func (r *recorder) StateChanged(s State) {
	if busy := r.told(s); busy != nil && s == Disconnected {
		<-busy
	}
}

func (r *recorder) told(s State) (busy chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deadlyState && s == Disconnected {
		panic("of a test")
	}
	r.states = append(r.states, s)
	return r.busy
}

func (r *recorder) Moved() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.moves++
}

func (r *recorder) moved() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.moves
}

func (r *recorder) heard() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.streams)
}

func (r *recorder) state() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.states) == 0 {
		return Connecting
	}
	return r.states[len(r.states)-1]
}

// newClient opens a connection and a client that knows its credentials.
func newClient(t testing.TB, transport *Transport, w *wire, owner string) *client {
	t.Helper()
	certificate, err := selfsign.GenerateSelfSigned()
	if err != nil {
		t.Fatal(err)
	}
	c, server, shaken := newServer(t, transport, w, owner, certificate)
	c.connect(server, shaken)
	return c
}

// newServer opens a connection whose offer names the certificate, and a client that shakes hands with it as DTLS server
// once it is checked.
func newServer(t testing.TB, transport *Transport, w *wire, owner string, certificate tls.Certificate, change ...func(*Config)) (*client, *dtls.Conn, chan error) {
	t.Helper()
	hash := sha256.Sum256(certificate.Certificate[0])
	c := &client{t: t, wire: w, got: &recorder{streams: map[uint32]int{}}, Buffer: packetio.NewBuffer(), answers: make(chan *stun.Message, 1024), media: make(chan []byte, 1024)}
	from, arriving := w.address()
	c.from = from
	go c.sort(arriving)
	t.Cleanup(func() { _ = arriving.Close() })
	cfg := Config{
		Handler: c.got, Owner: owner, Ufrag: "theirs", Password: theirPassword, Fingerprint: Fingerprint{Algorithm: "sha-256", Value: hash[:]},
		Profiles: []dtls.SRTPProtectionProfile{dtls.SRTP_AEAD_AES_128_GCM}, Log: slog.New(slog.DiscardHandler),
	}
	for _, changed := range change {
		changed(&cfg)
	}
	var err error
	c.conn, err = transport.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.conn.Close)
	server, err := dtls.ServerWithOptions(c, &net.UDPAddr{}, dtls.WithCertificates(certificate),
		dtls.WithSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM, dtls.SRTP_AES128_CM_HMAC_SHA1_80), dtls.WithInsecureSkipVerifyHello(true))
	if err != nil {
		t.Fatal(err)
	}
	shaken := make(chan error, 1)
	go func() { shaken <- server.HandshakeContext(t.Context()) }()
	t.Cleanup(func() { _ = server.Close(); _ = c.Close(); <-shaken })
	return c, server, shaken
}

// connect checks once and waits for DTLS.
func (c *client) connect(server *dtls.Conn, shaken chan error) {
	c.t.Helper()
	c.check(c.from, c.conn.Credentials(), true)
	select {
	case err := <-shaken:
		shaken <- nil
		if err != nil {
			c.t.Fatal(err)
		}
	case <-time.After(patience):
		c.t.Fatal("DTLS does not come to an end")
	}
	profile, _ := server.SelectedSRTPProtectionProfile()
	state, _ := server.ConnectionState()
	keys := srtp.Config{Profile: srtp.ProtectionProfile(profile)}
	if err := keys.ExtractSessionKeysFromDTLS(&state, false); err != nil {
		c.t.Fatal(err)
	}
	out, err := srtp.CreateContext(keys.Keys.LocalMasterKey, keys.Keys.LocalMasterSalt, keys.Profile)
	if err != nil {
		c.t.Fatal(err)
	}
	c.out = out
	eventually(c.t, "the connection is up", func() bool { return c.got.state() == Connected })
}

// sort puts what arrives where it is waited for.
func (c *client) sort(arriving *packetio.Buffer) {
	b := make([]byte, receiveBytes)
	for {
		n, err := arriving.Read(b)
		if err != nil {
			return
		}
		if stun.IsMessage(b[:n]) {
			m := &stun.Message{Raw: bytes.Clone(b[:n])}
			if m.Decode() == nil {
				c.answers <- m
			}
			continue
		}
		if b[0]>>6 == 2 {
			c.media <- bytes.Clone(b[:n])
			continue
		}
		_, _ = c.Write(b[:n]) // Nobody reads after the handshake.
	}
}

// check sends a connectivity check from an address.
func (c *client) check(from egress.Address, to Credentials, nominate bool) {
	c.t.Helper()
	c.wire.in <- datagram{from: from, b: checkFor(c.t, to, nominate)}
}

func checkFor(t testing.TB, to Credentials, nominate bool) []byte {
	t.Helper()
	setters := []stun.Setter{stun.BindingRequest, stun.TransactionID, stun.NewUsername(to.Ufrag + ":theirs")}
	if nominate {
		setters = append(setters, stun.RawAttribute{Type: stun.AttrUseCandidate})
	}
	m, err := stun.Build(append(setters, stun.NewShortTermIntegrity(to.Password), stun.Fingerprint)...)
	if err != nil {
		t.Fatal(err)
	}
	return m.Raw
}

// send sends one packet of a stream.
func (c *client) send(ssrc uint32, sequence uint16) {
	c.t.Helper()
	packet, err := (&rtp.Packet{Header: rtp.Header{Version: 2, SSRC: ssrc, SequenceNumber: sequence, PayloadType: 96}, Payload: []byte("frame")}).Marshal()
	if err != nil {
		c.t.Fatal(err)
	}
	sealed, err := c.out.EncryptRTP(nil, packet, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	c.wire.in <- datagram{from: c.from, b: sealed}
}

// ReadFrom and the next four are part of net.PacketConn, for DTLS.
func (c *client) ReadFrom(b []byte) (int, net.Addr, error) {
	n, err := c.Read(b)
	return n, &net.UDPAddr{}, err
}

func (c *client) WriteTo(b []byte, _ net.Addr) (int, error) {
	c.wire.in <- datagram{from: c.from, b: bytes.Clone(b)}
	return len(b), nil
}

func (c *client) LocalAddr() net.Addr              { return &net.UDPAddr{} }
func (c *client) SetDeadline(t time.Time) error    { return c.SetReadDeadline(t) }
func (c *client) SetWriteDeadline(time.Time) error { return nil }

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	testkit.Eventually(t, what, holds)
}
