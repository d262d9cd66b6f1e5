package signaling

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// Config is one signaling node's; begin with DefaultConfig.
type Config struct {
	Node ring.NodeID

	// Dev opens the token endpoint, allows pages from loopback, and answers only to addresses, localhost and Origins.
	// Do not set it where strangers reach the port.
	Dev bool

	// Origins are more hosts (path.Match patterns with port) whose pages may connect and load the library.
	Origins []string

	// ICEServers returns those of a relay's session, which is one for an identity; nil: none.
	ICEServers func(session string, ends, now time.Time) (servers []wire.ICEServer, life time.Duration)

	// ResumeGrace is how long after its token's end a session may be resumed.
	ResumeGrace time.Duration

	DemandRoomCreate bool

	// InviteURL is an application's, which gives tokens; {room} is replaced. Empty: invitations in dev only.
	InviteURL string

	// ExpectedSize is for tokens without one; 0 is headroom.DefaultPeople.
	ExpectedSize int

	// MaxParticipants is for tokens without one; 0 is no cap.
	MaxParticipants int

	// TrustedProxies say whom they bring in X-Forwarded-For, and which host was asked for in X-Forwarded-Host.
	TrustedProxies []netip.Prefix

	// PathPrefix is where a proxy serves the node if it passes the path on, such as /call. Requests without it are served, too.
	PathPrefix string

	ProxyProtocolFrom []netip.Prefix // balancers with the PROXY protocol

	TLS  *tls.Config   // the page's; nil: plain
	HSTS time.Duration // 0: not sent

	Limits limits.Config

	MaxSockets        int           // one more gets 503
	ShedPerSecond     int           // clients that an overloaded node sends elsewhere; 0: none
	FirstMessageLimit time.Duration // from the upgrade to `join` or `resume`
	JoinBudget        time.Duration // of a whole join or resume
	AttachPatience    time.Duration // of one attempt
	PingInterval      time.Duration
	PongLimit         time.Duration
	WriteLimit        time.Duration // of one message
	CutOffAfter       time.Duration // without hearing a media node
	StorelessAfter    time.Duration // without an answer of the store
	RetryBase         time.Duration
	RetryMax          time.Duration
	MessagesPerSecond float64 // of one client
	MessageBurst      int

	MaxWaitingPerAddress int
	OffersPerSecond      float64 // of one session
	OfferBurst           int
}

const (
	// coder/websocket waits 5 s for the other side.
	shutdownLimit = 6 * time.Second
	// Without a session; one more drops the oldest. Each costs 30 KiB.
	maxWaiting = 4096
	// Of one connection: an offer of 64 slots has 150 KiB. At this rate empty frames cost 1 % of a core.
	bytesPerSecond = 32 << 10
	byteBurst      = 1 << 20
	// Of HTTP/2: the page loads some 60 files.
	maxStreams = 100
)

// DefaultConfig is the binary's.
func DefaultConfig(node ring.NodeID) Config {
	return Config{
		Node:   node,
		Limits: limits.DefaultConfig(),
		// LiveKit's tokens' default life.
		ResumeGrace: 6 * time.Hour,
		// About 1 GiB.
		MaxSockets:        20_000,
		FirstMessageLimit: 10 * time.Second,
		// Clients give a first join 15 s: time for a second try.
		JoinBudget:     7 * time.Second,
		AttachPatience: 2 * time.Second,
		// Home routers forget idle connections after 30 s or more.
		PingInterval: 15 * time.Second,
		PongLimit:    10 * time.Second,
		WriteLimit:   10 * time.Second,
		// A resume elsewhere costs no media.
		CutOffAfter: 3 * time.Second,
		// A Sentinel failover is over by then.
		StorelessAfter: 10 * time.Second,
		// For broken streams; the hub hears of a death first.
		RetryBase: 100 * time.Millisecond,
		RetryMax:  2 * time.Second,
		// A window's resize sends a few a second.
		MessagesPerSecond: 40,
		MessageBurst:      120,
		// A large office, or a balancer whose node has just died.
		MaxWaitingPerAddress: 512,
		// A failover takes four at most.
		OffersPerSecond: 2,
		OfferBurst:      10,
	}
}

func (c Config) proxies() []netip.Prefix { return slices.Concat(c.TrustedProxies, c.ProxyProtocolFrom) }

// Validate lists every fault.
func (c Config) Validate() error {
	var faults []error
	if c.Node == "" {
		faults = append(faults, errors.New("the signaling node has no name"))
	}
	if c.MaxSockets <= 0 {
		faults = append(faults, fmt.Errorf("limit of sockets is %d, want a positive number", c.MaxSockets))
	}
	if c.HSTS < 0 {
		faults = append(faults, fmt.Errorf("HSTS is %v, want 0 or more", c.HSTS))
	}
	if c.ResumeGrace < 0 {
		faults = append(faults, fmt.Errorf("resume grace is %v, want 0 or more", c.ResumeGrace))
	}
	if u, err := url.Parse(c.InviteURL); c.InviteURL != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || !strings.Contains(c.InviteURL, "{room}")) {
		faults = append(faults, fmt.Errorf("address of invitations is %q, want one such as https://app.example.org/join?room={room}", c.InviteURL))
	}
	if c.ShedPerSecond < 0 {
		faults = append(faults, fmt.Errorf("shed is %d clients a second, want 0 or more", c.ShedPerSecond))
	}
	if c.ExpectedSize < 0 {
		faults = append(faults, fmt.Errorf("expected size is %d, want 0 or more", c.ExpectedSize))
	}
	if c.MaxParticipants < 0 || c.MaxParticipants > wire.MaxCap {
		faults = append(faults, fmt.Errorf("cap is %d, want 0 to %d", c.MaxParticipants, wire.MaxCap))
	}
	return errors.Join(append(faults, CheckOrigins(c.Origins), checkPathPrefix(c.PathPrefix))...)
}

// CheckOrigins lists what is no pattern of hosts.
func CheckOrigins(patterns []string) error {
	var faults []error
	for _, pattern := range patterns {
		if _, err := path.Match(pattern, ""); err != nil || strings.Contains(pattern, "/") {
			faults = append(faults, fmt.Errorf("origin %q is not a host: give one such as app.example.org, *.example.org or app.example.org:8443, without https:// and path", pattern))
		}
	}
	return errors.Join(faults...)
}

// pause waits before another try, with jitter, so that clients get out of step. It returns false when ctx ended.
func (c *Config) pause(ctx context.Context, tries int) bool {
	pause := min(c.RetryBase<<min(tries, 16), c.RetryMax)
	return backoff.Sleep(ctx, pause/2+rand.N(pause/2+1))
}
