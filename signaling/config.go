package signaling

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// Config is one signaling node's own choices. Begin with DefaultConfig.
type Config struct {
	Node ring.NodeID // for logs

	// Dev opens the token endpoint, allows pages from loopback, and answers only to addresses, localhost and Origins.
	// Never set it where strangers reach the port.
	Dev bool

	// Origins are further hosts (patterns as of path.Match, with the port) whose pages may open the WebSocket and load
	// the client library.
	Origins []string

	// ICEServers is what clients are given; a media node with a public address needs none.
	ICEServers []wire.ICEServer

	// ResumeGrace is how long after its access token's end a session may be resumed. It bounds every way into a room by
	// that end.
	ResumeGrace time.Duration

	// DemandRoomCreate lets only tokens with roomCreate open a room.
	DemandRoomCreate bool

	// ExpectedSize is used where the token says nothing; 0 takes headroom.DefaultPeople.
	ExpectedSize int

	// TrustedProxies are networks whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix

	Quotas Quotas

	MaxSockets        int           // one more is refused with 503
	FirstMessageLimit time.Duration // from the upgrade to `join` or `resume`
	JoinBudget        time.Duration // of all that a join or a resume waits for
	AttachPatience    time.Duration // of one attempt to attach
	PingInterval      time.Duration // between WebSocket pings
	PongLimit         time.Duration
	WriteLimit        time.Duration // of one message to a client
	ShutdownLimit     time.Duration // of telling clients to go elsewhere
	CutOffAfter       time.Duration // without a media node that is heard
	RetryBase         time.Duration // first pause before attaching again
	RetryMax          time.Duration // longest such pause
	MessagesPerSecond float64       // of one client
	MessageBurst      int

	MaxWaiting           int // connections without a session; the oldest goes for one more
	MaxWaitingPerAddress int
	BytesPerSecond       float64 // of one connection
	ByteBurst            int
	OffersPerSecond      float64 // of one session
	OfferBurst           int
	AsksPerSecond        float64 // joins and resumes of one identity in one room
	AskBurst             int
	EntriesPerSecond     float64 // those of them that were placed
	EntryBurst           int
	OpeningsPerSecond    float64 // joins of one identity that may reserve egress
	OpeningBurst         int
}

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
		// The client gives a first join 15 s: this leaves time for a second try elsewhere.
		JoinBudget: 7 * time.Second,
		// A live node answers in milliseconds; a frozen one stays silent.
		AttachPatience: 2 * time.Second,
		// Home routers forget an idle connection after 30 s or more.
		PingInterval: 15 * time.Second,
		PongLimit:    10 * time.Second,
		WriteLimit:   10 * time.Second,
		// coder/websocket waits 5 s for the other side to close.
		ShutdownLimit: 6 * time.Second,
		// Going elsewhere costs a client one resume, and no media.
		CutOffAfter: 3 * time.Second,
		// After a death the hub hears of the new pin first; these retries serve streams that broke for other reasons.
		RetryBase: 100 * time.Millisecond,
		RetryMax:  2 * time.Second,
		// A page says a few messages a second when somebody resizes its window.
		MessagesPerSecond: 40,
		MessageBurst:      120,
		// An honest client passes through in one round trip. Each costs 30 KiB.
		MaxWaiting: 4096,
		// A large office behind one address, or a balancer whose node has just died.
		MaxWaitingPerAddress: 512,
		// An offer of 64 slots has 150 KiB and comes once. At this pace frames without bytes cost 1 % of a core.
		BytesPerSecond: 32 << 10,
		ByteBurst:      1 << 20,
		// A failover takes four offers at most.
		OffersPerSecond: 2,
		OfferBurst:      10,
		// Clients that wait for the store come five times a second.
		AsksPerSecond: 8,
		AskBurst:      40,
		// A dropped socket leaves a place behind for the grace time of 30 s: at most 80 of a room's 300.
		EntriesPerSecond: 2,
		EntryBurst:       20,
		// A reservation lasts 10 s at most, so one identity holds six of them here.
		OpeningsPerSecond: 0.2,
		OpeningBurst:      4,
	}
}

// Validate lists every fault.
func (c Config) Validate() error {
	var faults []error
	if c.Node == "" {
		faults = append(faults, errors.New("the signaling node has no name"))
	}
	for name, d := range map[string]time.Duration{
		"first message limit": c.FirstMessageLimit, "join budget": c.JoinBudget, "attach patience": c.AttachPatience,
		"ping interval": c.PingInterval, "pong limit": c.PongLimit, "write limit": c.WriteLimit,
		"shutdown limit": c.ShutdownLimit, "time without media nodes": c.CutOffAfter, "retry base": c.RetryBase, "retry maximum": c.RetryMax,
	} {
		if d <= 0 {
			faults = append(faults, fmt.Errorf("%s is %v, want a positive duration", name, d))
		}
	}
	for name, limit := range map[string]float64{
		"sockets": float64(c.MaxSockets), "messages per second": c.MessagesPerSecond, "messages at once": float64(c.MessageBurst),
		"waiting connections": float64(c.MaxWaiting), "waiting connections of one address": float64(c.MaxWaitingPerAddress),
		"bytes per second": c.BytesPerSecond, "bytes at once": float64(c.ByteBurst),
		"offers per second": c.OffersPerSecond, "offers at once": float64(c.OfferBurst),
		"asks per second": c.AsksPerSecond, "asks at once": float64(c.AskBurst),
		"entries per second": c.EntriesPerSecond, "entries at once": float64(c.EntryBurst),
		"openings per second": c.OpeningsPerSecond, "openings at once": float64(c.OpeningBurst),
	} {
		if limit <= 0 {
			faults = append(faults, fmt.Errorf("limit of %s is %v, want a positive number", name, limit))
		}
	}
	if c.ResumeGrace < 0 {
		faults = append(faults, fmt.Errorf("resume grace is %v, want 0 or more", c.ResumeGrace))
	}
	if c.ExpectedSize < 0 {
		faults = append(faults, fmt.Errorf("expected size is %d, want 0 or more", c.ExpectedSize))
	}
	return errors.Join(faults...)
}
