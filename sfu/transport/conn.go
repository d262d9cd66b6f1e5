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
	"net"
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

	"github.com/holdfast-rtc/holdfast/internal/traces"
	"github.com/holdfast-rtc/holdfast/sfu/egress"
)

// State is the state of a connection.
type State int

// The states.
const (
	Connecting State = iota
	// Connected means that DTLS is up, or that the other media node has answered.
	Connected
	// Disconnected means that the other end has been silent for a client's 5 s or a media node's 3 s.
	Disconnected
	// Failed means that DTLS failed, or that the other end has been silent for a client's 30 s or a media node's 10 s.
	Failed
)

// Handler uses a connection. Its methods RTP, RTCP, Tick and Moved must not block, and must not keep packets and
// headers.
type Handler interface {
	// RTP gets authentic packets, decrypted, in order of arrival.
	RTP(header *rtp.Header, packet []byte, arrived time.Time)
	// RTCP gets compound packets.
	RTCP(packet []byte, arrived time.Time)
	// Tick is called as TickAt asked.
	Tick(now time.Time)
	// StateChanged hears each change in order. It may wait, and must not call Close.
	StateChanged(state State)
	// Moved says that media goes to another address from now on.
	Moved()
}

// Config describes a connection.
type Config struct {
	Handler Handler
	// Owner names the client or the media node. Its newer connections may take an older one's addresses.
	Owner string
	// Ufrag and Password are the client's ICE credentials.
	Ufrag, Password string
	Fingerprint     Fingerprint
	// Fresh says that the client's RTCPeerConnection is new, so that it has no former node.
	Fresh bool
	// Unmet says that the client is not known yet. Nobody is answered before Meet.
	Unmet    bool
	Profiles []dtls.SRTPProtectionProfile
	// Keys make a keyed connection: the other end is a media node, which Owner names, and there is no DTLS. Its
	// credentials are those of Dial, so that Ufrag, Password, Fingerprint and Profiles stay empty.
	Keys Keys
	// Data carries what DTLS carries beside the handshake until its connection ends, which is after Close at the latest. Nothing is sent
	// after Close, not even an alert. nil: DTLS ends with the handshake, which spares its memory.
	Data func(conn net.Conn)
	Log  *slog.Logger
	// Trace is told how long ICE and DTLS took. It may be zero.
	Trace traces.Span
}

// Fingerprint is the hash of a certificate (RFC 8122 section 5).
type Fingerprint struct {
	// Algorithm is "sha-256", "sha-384" or "sha-512".
	Algorithm string
	Value     []byte
}

// Credentials are the node's part of a connection.
type Credentials struct {
	Ufrag, Password string
	// Fingerprint has the form "sha-256 AA:BB...". A keyed connection has none.
	Fingerprint string
}

const (
	keptUsers = 2
	// Browsers send 20 a second (RFC 8445 section 14.2).
	checksPerSecond, checksBurst = 50, 100
	backsPerSecond, backsBurst   = 20, 40
)

// Conn is the transport to one client or to another media node. It is safe for concurrent use.
type Conn struct {
	transport *Transport
	cfg       Config
	// keyed is nil for clients.
	keyed       *keyed
	certificate tls.Certificate
	fingerprint string
	addresses   []egress.Address // guarded by transport.mu
	stranger    *rate.Limiter
	backs       *rate.Limiter

	// selected is nil before the first check.
	selected atomic.Pointer[egress.Address]
	// The monotonic part of opened counts, because somebody may set the wall clock.
	opened time.Time
	// The times of the last authentic packet from the selected address and from other addresses, in nanoseconds after
	// opened.
	heardThere, heardElsewhere atomic.Int64
	// goodbye is the time of the last DTLS alert, in nanoseconds after opened; 0 if there was none. Alerts are not
	// authentic.
	goodbye atomic.Int64

	broken atomic.Bool
	in     inbound
	out    outbound

	mu        sync.Mutex // guards the fields below
	users     []user
	remote    user
	unmet     bool
	nominated bool
	wanted    checkBack
	reversal  reversal
	// priority is that of this node's address, if the client learned it by checks: a higher one than its former node's.
	priority uint32
	// keys are zero before DTLS is up, and if a standby cannot use them.
	keys    Keys
	pipe    *pipe
	cancel  context.CancelFunc
	begun   bool
	up      bool
	failed  bool
	closed  bool
	running sync.WaitGroup

	// states orders the changes of state.
	states sync.Mutex
	state  State // guarded by states
}

type checkBack struct {
	to     egress.Address
	id     [stun.TransactionIDSize]byte
	remote user
	role   role
	// priority is that of a candidate that the client learns by the check, or 0.
	priority uint32
}

type user struct{ ufrag, password string }

// Open makes a connection that waits to be checked.
func (t *Transport) Open(cfg Config) (*Conn, error) {
	c := t.newConn(cfg)
	keys := cfg.Keys
	c.cfg.Keys = Keys{}
	var err error
	if keys.IsZero() {
		err = c.certify()
	} else {
		err = c.openKeyed(keys)
	}
	if err != nil {
		return nil, err
	}
	c.Restart(cfg.Ufrag, cfg.Password)
	return c, nil
}

func (t *Transport) newConn(cfg Config) *Conn {
	return &Conn{
		transport: t, cfg: cfg, opened: time.Now(), unmet: cfg.Unmet,
		stranger: rate.NewLimiter(checksPerSecond, checksBurst), backs: rate.NewLimiter(backsPerSecond, backsBurst),
	}
}

// certify makes a certificate of its own for each connection. With one that it knows, a browser would keep its old DTLS
// session.
func (c *Conn) certify() error {
	certificate, err := selfsign.GenerateSelfSigned()
	if err != nil {
		return fmt.Errorf("make certificate: %w", err)
	}
	parsed, err := x509.ParseCertificate(certificate.Certificate[0])
	if err != nil {
		return fmt.Errorf("read own certificate: %w", err)
	}
	hash, err := fingerprint.Fingerprint(parsed, crypto.SHA256)
	if err != nil {
		return fmt.Errorf("hash own certificate: %w", err)
	}
	c.certificate, c.fingerprint = certificate, "sha-256 "+strings.ToUpper(hash)
	return nil
}

// Restart begins an ICE generation. The former generation is answered until the next Restart.
func (c *Conn) Restart(ufrag, password string) {
	fresh := user{ufrag: random(6), password: random(18)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.remote, c.nominated = user{ufrag: ufrag, password: password}, false
	c.reversal.restart()
	c.users = append(c.users, fresh)
	if len(c.users) > keptUsers {
		c.transport.forgetUser(c.users[0].ufrag)
		c.users = slices.Delete(c.users, 0, 1)
	}
	if !c.unmet {
		c.transport.serve(fresh.ufrag, c)
	}
}

// Meet says who the client of a connection is that was opened with Unmet. Later calls do nothing.
func (c *Conn) Meet(ufrag, password string, fingerprint Fingerprint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || !c.unmet {
		return
	}
	// The handshake, which reads the fingerprint, begins only after the first check.
	c.unmet, c.cfg.Fingerprint, c.remote = false, fingerprint, user{ufrag: ufrag, password: password}
	c.transport.serve(c.users[len(c.users)-1].ufrag, c)
}

// random returns characters for ICE credentials (RFC 8839 section 5.4).
func random(bytes int) string {
	b := make([]byte, bytes)
	_, _ = rand.Read(b)
	return base64.RawStdEncoding.EncodeToString(b)
}

// Credentials returns the present ones.
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

// mayCheck bounds how much work strangers can cause. The address in use is always heard.
func (c *Conn) mayCheck(from egress.Address, now time.Time) bool {
	c.mu.Lock()
	up := c.up
	c.mu.Unlock()
	used := c.selected.Load()
	return up && used != nil && *used == from || c.stranger.AllowN(now, 1)
}

// use needs mu.
func (c *Conn) use(address egress.Address, now time.Time) {
	c.selected.Store(&address)
	c.heardFrom(address, now)
}

// abandoned reports whether checks come only from another address. Firefox does not nominate again when its NAT gives
// it another address. It needs mu.
func (c *Conn) abandoned(now time.Time) bool {
	return c.up && c.since(&c.heardThere, now) > c.limits().disconnected
}

// checked reports whether to check back. Media moves only to an address that has answered a check: another one may be
// forged.
func (c *Conn) checked(from egress.Address, said said, at time.Time) (back checkBack, wanted bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return checkBack{}, false
	}
	if c.keyed != nil {
		return c.otherChecked(from, at)
	}
	nominated := said.nominates
	if !c.nominated && said.follows && c.reversal.wanted && c.up && said.user == c.users[len(c.users)-1].ufrag {
		return c.lead(from, at)
	}
	c.nominated = c.nominated || nominated
	now := c.selected.Load()
	if move := now == nil || *now != from && (nominated || c.abandoned(at)); move && !c.up {
		c.use(from, at)
	} else if move {
		return c.checkThere(from, at)
	}
	if nominated && !c.begun {
		c.begun = true
		c.beginHandshake(from)
	}
	return checkBack{to: from, id: stun.NewTransactionID(), remote: c.remote}, !c.nominated && c.backs.AllowN(at, 1)
}

// lead nominates an address for a client that stays the controlled end after an ICE restart: it waits for that. It needs mu.
func (c *Conn) lead(from egress.Address, at time.Time) (back checkBack, wanted bool) {
	if c.wanted.to != from {
		c.wanted = checkBack{to: from, id: stun.NewTransactionID()}
	}
	c.wanted.remote, c.wanted.role, c.wanted.priority = c.remote, nominating, c.priority
	return c.wanted, c.backs.AllowN(at, 1)
}

// checkThere asks an address whether media may move to it. It needs mu.
func (c *Conn) checkThere(from egress.Address, at time.Time) (back checkBack, wanted bool) {
	if c.wanted.to != from {
		c.wanted = checkBack{to: from, id: stun.NewTransactionID()}
	}
	c.wanted.remote, c.wanted.role = c.remote, c.reversal.role()
	return c.wanted, c.backs.AllowN(at, 1)
}

func (c *Conn) answered(from egress.Address, now time.Time, id [stun.TransactionIDSize]byte, authentic func(password string) bool) {
	if c.keyed != nil {
		c.otherAnswered(from, now, id, authentic)
		return
	}
	c.mu.Lock()
	moves := c.wanted.to == from && c.wanted.id == id && authentic(c.wanted.remote.password)
	if moves {
		c.nominated = c.nominated || c.wanted.role == nominating
		c.wanted = checkBack{}
		c.use(from, now)
	}
	c.reversal.answered(from, id, authentic)
	c.mu.Unlock()
	if moves {
		c.cfg.Handler.Moved()
	}
}

func (c *Conn) tick(now time.Time) { c.cfg.Handler.Tick(now) }

// Left reports whether the client seems to be gone: it was silent for half a second after a DTLS alert, or for
// disconnectedAfter.
func (c *Conn) Left() bool {
	now := time.Now()
	return !c.alive(now) || c.goodbye.Load() != 0 && c.silence(now) >= time.Second/2
}

// HandshakeFailed reports whether the client was reached and DTLS did not finish.
func (c *Conn) HandshakeFailed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed && !c.up
}

// Network returns "udp" or "tcp", whichever carries what is sent, or nothing before an address is chosen.
func (c *Conn) Network() string {
	switch to := c.selected.Load(); {
	case to == nil:
		return ""
	case to.Stream != nil:
		return "tcp"
	}
	return "udp"
}

// Close returns when the goroutines have ended. It sends no DTLS close_notify, which would end an RTCPeerConnection
// that may be moving.
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
