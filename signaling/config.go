package signaling

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// Config of one signaling node. Begin with DefaultConfig.
type Config struct {
	Node ring.NodeID

	// Dev opens the token endpoint, allows pages from loopback, and answers only to addresses, localhost and Origins.
	// Never set it where strangers reach the port.
	Dev bool

	// Origins are further hosts (path.Match patterns, with the port) whose pages may open the WebSocket and load the
	// library.
	Origins []string

	// ICEServers gives those of a session; a media node with a public address needs none. Nil: nobody is given any.
	ICEServers func(session string, now time.Time) (servers []wire.ICEServer, life time.Duration)

	// ResumeGrace is how long after its access token's end a session may be resumed.
	ResumeGrace time.Duration

	DemandRoomCreate bool

	// InviteURL is where the page's invitations lead, with {room} in the room's place: at an application that gives tokens.
	// Empty: the page makes invitations in dev only.
	InviteURL string

	// ExpectedSize counts where the token says nothing; 0 takes headroom.DefaultPeople.
	ExpectedSize int

	// MaxParticipants counts where the token says nothing; 0 for no cap.
	MaxParticipants int

	TrustedProxies []netip.Prefix // say it in X-Forwarded-For

	ProxyProtocolFrom []netip.Prefix // balancers that say in the PROXY protocol whom they bring

	TLS  *tls.Config   // of the page's port; nil: it is plain
	HSTS time.Duration // 0: browsers are told nothing

	Quotas Quotas

	MaxSockets        int           // one more gets 503
	ShedPerSecond     int           // clients that a node with far more than others sends elsewhere; 0 for none
	FirstMessageLimit time.Duration // from the upgrade to `join` or `resume`
	JoinBudget        time.Duration // for all of a join or a resume
	AttachPatience    time.Duration // for one attempt
	PingInterval      time.Duration
	PongLimit         time.Duration
	WriteLimit        time.Duration // for one message
	CutOffAfter       time.Duration // without a media node that is heard
	RetryBase         time.Duration
	RetryMax          time.Duration
	MessagesPerSecond float64 // of one client
	MessageBurst      int

	MaxWaitingPerAddress int
	OffersPerSecond      float64 // of one session
	OfferBurst           int
	EntriesPerSecond     float64 // those that were placed
	EntryBurst           int
	OpeningsPerSecond    float64 // joins of an identity that may reserve egress
}

const (
	// coder/websocket waits 5 s for the other side to close.
	shutdownLimit = 6 * time.Second
	// Without a session; the oldest goes for one more. An honest client passes in one round trip. Each costs 30 KiB.
	maxWaiting = 4096
	// Of one connection. An offer of 64 slots has 150 KiB. Frames without bytes cost 1 % of a core at this pace.
	bytesPerSecond = 32 << 10
	byteBurst      = 1 << 20
	// Of HTTP/2: the page loads some 60 files.
	maxStreams = 100
	// Joins and resumes, by identity and room. Clients that wait for the store come five times a second.
	asksPerSecond = 8
	askBurst      = 40
	openingBurst  = 4
)

// DefaultConfig is what the binary uses.
func DefaultConfig(node ring.NodeID) Config {
	return Config{
		Node:   node,
		Quotas: defaultQuotas(),
		// As long as LiveKit's tokens last by default.
		ResumeGrace: 6 * time.Hour,
		// About 1 GiB.
		MaxSockets:        20_000,
		FirstMessageLimit: 10 * time.Second,
		// The client gives a first join 15 s: time for a second try elsewhere.
		JoinBudget:     7 * time.Second,
		AttachPatience: 2 * time.Second,
		// Home routers forget an idle connection after 30 s or more.
		PingInterval: 15 * time.Second,
		PongLimit:    10 * time.Second,
		WriteLimit:   10 * time.Second,
		// Going elsewhere costs a client one resume, and no media.
		CutOffAfter: 3 * time.Second,
		// The hub hears of a death's new pin first; these are for other broken streams.
		RetryBase: 100 * time.Millisecond,
		RetryMax:  2 * time.Second,
		// A few a second come while somebody resizes a window.
		MessagesPerSecond: 40,
		MessageBurst:      120,
		// A large office behind one address, or a balancer whose node has just died.
		MaxWaitingPerAddress: 512,
		// A failover takes four offers at most.
		OffersPerSecond: 2,
		OfferBurst:      10,
		// A dropped socket keeps a place for 30 s: at most 80 of a room's 300.
		EntriesPerSecond: 2,
		EntryBurst:       20,
		// A reservation lasts 10 s: six of them for one identity.
		OpeningsPerSecond: 0.2,
	}
}

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
	return errors.Join(faults...)
}
