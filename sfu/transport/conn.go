package transport

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/dtls/v3/pkg/crypto/fingerprint"
	"github.com/pion/dtls/v3/pkg/crypto/selfsign"
	"github.com/pion/rtp"
	"github.com/pion/stun/v4"
	"golang.org/x/time/rate"

	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

// State is how a connection does.
type State int

// The states of a connection, in the order in which they are usually gone through.
const (
	Connecting   State = iota
	Connected          // DTLS is up and the client is heard
	Disconnected       // nothing has been heard for disconnectedAfter
	Failed             // DTLS failed, or nothing has been heard for much longer: for good
)

// Handler is what a connection tells its user. RTP, RTCP and Tick must not block. Packets and headers are the callee's for the time
// of the call only.
type Handler interface {
	// RTP gets each packet that was authenticated, header and decrypted payload, in order of arrival.
	RTP(header *rtp.Header, packet []byte, arrived time.Time)
	// RTCP gets each compound packet.
	RTCP(packet []byte, arrived time.Time)
	// Tick is called as TickAt asked for.
	Tick(now time.Time)
	// StateChanged is told of every change, in order. It must not call Close.
	StateChanged(state State)
}

// Config describes a connection.
type Config struct {
	Handler Handler
	// Owner names the client: a newer connection of the same client may take the addresses of an older one.
	Owner string
	// Ufrag and Password are the client's ICE credentials, of its offer.
	Ufrag, Password string
	Fingerprint     Fingerprint // of the client's certificate
	// Profiles are the SRTP profiles that are offered; the client picks one.
	Profiles []dtls.SRTPProtectionProfile
	Log      *slog.Logger
}

// Fingerprint is the hash of a certificate (RFC 8122 section 5).
type Fingerprint struct {
	Algorithm string // "sha-256", "sha-384" or "sha-512"
	Value     []byte
}

// Credentials are what an answer tells the client of the node's side.
type Credentials struct {
	Ufrag, Password string
	Fingerprint     string // of this connection's own certificate, "sha-256 AA:BB..."
}

const (
	// keptUsers is how many ICE generations of a connection are answered: while the client restarts ICE it still checks the old way.
	keptUsers = 2
	// checksPerSecond bounds the checks from other addresses than the one in use: a browser sends 20 a second (RFC 8445 section 14.2), for a
	// few seconds.
	checksPerSecond, checksBurst = 50, 100
	// backsPerSecond bounds our own checks: a client could forge the address that they go to.
	backsPerSecond, backsBurst = 20, 40
)

// Conn is the transport of one client. Its methods are safe for concurrent use.
type Conn struct {
	transport   *Transport
	cfg         Config
	certificate tls.Certificate
	fingerprint string
	addresses   []egress.Address // the oldest first; guarded by transport.mu
	stranger    *rate.Limiter
	backs       *rate.Limiter

	selected atomic.Pointer[egress.Address] // where media is sent to; nil before the first check
	heard    atomic.Int64                   // when something authentic came last, Unix nanoseconds
	goodbye  atomic.Int64                   // when a DTLS alert came, likewise; it is not authenticated here

	broken atomic.Bool // nothing is read any more
	in     inbound
	out    outbound

	mu        sync.Mutex // guards the fields below
	users     []user     // the newest last
	remote    user       // the client's present credentials
	nominated bool       // in the present generation
	wanted    checkBack  // where the client wants its media and has not answered yet
	pipe      *pipe      // to DTLS, while it shakes hands
	cancel    context.CancelFunc
	begun     bool // the handshake
	up        bool
	failed    bool // the handshake, or too many streams
	closed    bool
	running   sync.WaitGroup

	states sync.Mutex // held while a change of state is told, for their order
	state  State      // guarded by states
}

// checkBack is a check of ours to a client that has checked us.
type checkBack struct {
	to     egress.Address
	id     [stun.TransactionIDSize]byte
	remote user
}

// user is one side's ICE credentials in one generation.
type user struct{ ufrag, password string }

// Open makes a connection with a certificate of its own: a browser that is answered with a certificate it knows keeps its old DTLS
// session and shows nothing, also when it comes back to a node that it was connected to before.
func (t *Transport) Open(cfg Config) (*Conn, error) {
	certificate, err := selfsign.GenerateSelfSigned()
	if err != nil {
		return nil, fmt.Errorf("make certificate: %w", err)
	}
	parsed, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		return nil, fmt.Errorf("read own certificate: %w", err)
	}
	hash, err := fingerprint.Fingerprint(parsed, crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("hash own certificate: %w", err)
	}
	c := &Conn{
		transport: t, cfg: cfg, certificate: certificate, fingerprint: "sha-256 " + strings.ToUpper(hash),
		stranger: rate.NewLimiter(checksPerSecond, checksBurst), backs: rate.NewLimiter(backsPerSecond, backsBurst),
	}
	c.heard.Store(time.Now().UnixNano())
	c.Restart(cfg.Ufrag, cfg.Password)
	return c, nil
}

// Restart begins a new ICE generation, with the client's new credentials; that of before is answered until there is another.
func (c *Conn) Restart(ufrag, password string) {
	fresh := user{ufrag: random(6), password: random(18)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.remote, c.nominated = user{ufrag: ufrag, password: password}, false
	c.users = append(c.users, fresh)
	if len(c.users) > keptUsers {
		c.transport.forgetUser(c.users[0].ufrag)
		c.users = slices.Delete(c.users, 0, 1)
	}
	c.transport.serve(fresh.ufrag, c)
}

// random is a string of ICE characters (RFC 8839 section 5.4) with 8 bits of randomness for each byte.
func random(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b) // It never fails.
	return base64.RawStdEncoding.EncodeToString(b)
}

// Credentials are the present ones.
func (c *Conn) Credentials() Credentials {
	c.mu.Lock()
	defer c.mu.Unlock()
	newest := c.users[len(c.users)-1]
	return Credentials{Ufrag: newest.ufrag, Password: newest.password, Fingerprint: c.fingerprint}
}

func (c *Conn) password(ufrag string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range c.users {
		if u.ufrag == ufrag {
			return u.password, true
		}
	}
	return "", false
}

// mayCheck bounds what strangers can make us verify, and what a client can make us answer to somebody whose address it forges. The address
// that media goes to is always heard: somebody has shaken hands or answered a check there.
func (c *Conn) mayCheck(from egress.Address, now time.Time) bool {
	c.mu.Lock()
	up := c.up
	c.mu.Unlock()
	used := c.selected.Load()
	return up && used != nil && *used == from || c.stranger.AllowN(now, 1)
}

func (c *Conn) heardFrom(now time.Time) { c.heard.Store(now.UnixNano()) }

// checked acts on an authentic check and reports whether to check back. The handshake goes to where the first check came from, then to
// where the client wants it. Media does not move before the client has answered a check there: with a forged source address a client
// could have it sent to anybody.
func (c *Conn) checked(from egress.Address, nominated bool, at time.Time) (back checkBack, wanted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return checkBack{}, false
	}
	c.nominated = c.nominated || nominated
	now := c.selected.Load()
	if move := now == nil || nominated && *now != from; move && !c.up {
		c.selected.Store(&from)
	} else if move {
		if c.wanted.to != from {
			c.wanted = checkBack{to: from, id: stun.NewTransactionID()}
		}
		c.wanted.remote = c.remote
		return c.wanted, c.backs.AllowN(at, 1)
	}
	if nominated && !c.begun {
		c.begun = true
		c.beginHandshake(from)
	}
	return checkBack{to: from, id: stun.NewTransactionID(), remote: c.remote}, !c.nominated && c.backs.AllowN(at, 1)
}

// answered moves media to an address from which the client has answered a check.
func (c *Conn) answered(from egress.Address, id [stun.TransactionIDSize]byte, authentic func(password string) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wanted.to == from && c.wanted.id == id && authentic(c.wanted.remote.password) {
		c.wanted = checkBack{}
		c.selected.Store(&from)
	}
}

func (c *Conn) tick(now time.Time) { c.cfg.Handler.Tick(now) }

// Left reports whether the client seems to have closed its end: half a second of silence after a DTLS alert, which its last packets may
// overtake, or disconnectedAfter without one.
func (c *Conn) Left() bool {
	now := time.Now()
	return !c.alive(now) || c.goodbye.Load() != 0 && now.UnixNano()-c.heard.Load() >= int64(time.Second/2)
}

// HandshakeFailed reports whether the client was reached and DTLS came to no end.
func (c *Conn) HandshakeFailed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed && !c.up
}

// Close ends the connection and returns when its goroutines have ended. The client is told nothing: it may be on its way to another
// node with the same RTCPeerConnection, which a DTLS close_notify would end.
func (c *Conn) Close() {
	c.mu.Lock()
	c.closed = true
	if c.cancel != nil {
		c.cancel()
	}
	users := c.users
	c.mu.Unlock()
	c.transport.remove(c, users)
	c.out.close()
	c.running.Wait()
}
