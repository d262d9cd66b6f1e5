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
	Node ring.NodeID // stable name, for logs and for the SFU nodes' logs

	// Dev opens the token endpoint, allows pages from loopback addresses, and answers only
	// to addresses, localhost and Origins. It is never to be set where strangers can reach the port.
	Dev bool

	// Origins are hosts (patterns as of path.Match, such as "*.example.org"), besides this
	// node's own, whose pages may open the WebSocket and load the client library. A port is part
	// of the host.
	Origins []string

	// ICEServers is what clients are given; most deployments need none, because
	// the SFU's address is public.
	ICEServers []wire.ICEServer

	// ResumeGrace is how long after its access token's end a session may still be resumed: a call goes on when its token
	// ends, and must survive its signaling node then. With it the access token's end bounds every way into a room.
	ResumeGrace time.Duration

	// DemandRoomCreate lets only tokens with roomCreate open a room; the others join what is open.
	DemandRoomCreate bool

	// ExpectedSize is how many people a new room is expected to hold, where the token says nothing; 0 takes
	// headroom.DefaultPeople.
	ExpectedSize int

	// TrustedProxies are the addresses of balancers that say in X-Forwarded-For whom they bring.
	TrustedProxies []netip.Prefix

	// Quotas bound what one identity, API key and address do in all rooms together.
	Quotas Quotas

	MaxSockets        int           // held at once; one more is refused with 503
	FirstMessageLimit time.Duration // from the upgrade to `join` or `resume`
	JoinBudget        time.Duration // of everything a join or a resume waits for
	AttachPatience    time.Duration // of one attempt to attach to a node
	PingInterval      time.Duration // between WebSocket pings
	PongLimit         time.Duration // for the answer to one
	WriteLimit        time.Duration // of one message to a client
	ShutdownLimit     time.Duration // of telling clients to go elsewhere
	CutOffAfter       time.Duration // without a media node that is heard, before clients are sent to another signaling node
	RetryBase         time.Duration // first pause before attaching again
	RetryMax          time.Duration // longest such pause
	MessagesPerSecond float64       // of one client, on average
	MessageBurst      int           // of one client, at once

	MaxWaiting           int     // connections without a session; whoever has waited longest goes for one more
	MaxWaitingPerAddress int     // the same of one address
	BytesPerSecond       float64 // read of one connection, on average
	ByteBurst            int     // read of one connection, at once
	OffersPerSecond      float64 // of one session, on average
	OfferBurst           int     // of one session, at once
	AsksPerSecond        float64 // joins and resumes of one identity in one room, whether placed or not, on average
	AskBurst             int     // the same, at once
	EntriesPerSecond     float64 // those of them that were placed, on average
	EntryBurst           int     // the same, at once
	OpeningsPerSecond    float64 // joins of one identity, in any room, that may reserve egress for a new room, on average
	OpeningBurst         int     // the same, at once
}

// DefaultConfig is what the binary uses.
func DefaultConfig(node ring.NodeID) Config {
	return Config{
		Node:   node,
		Quotas: defaultQuotas(),
		// LiveKit's tokens last as long where nobody says otherwise: a call that long, begun with a token of minutes.
		ResumeGrace: 6 * time.Hour,
		// Some 50 KiB each with their goroutines and stream (lab/attack measures it): about 1 GiB.
		MaxSockets:        20_000,
		FirstMessageLimit: 10 * time.Second,
		// The client gives a first join 15 s; this leaves it time for a second try elsewhere.
		JoinBudget: 7 * time.Second,
		// A live node answers in a few milliseconds. A frozen one accepts and stays
		// silent: waiting longer would only delay finding out where the room went.
		AttachPatience: 2 * time.Second,
		// Home routers forget an idle connection after 30 s or more.
		PingInterval: 15 * time.Second,
		PongLimit:    10 * time.Second,
		WriteLimit:   10 * time.Second,
		// The close handshake of coder/websocket itself waits 5 s for the other side.
		ShutdownLimit: 6 * time.Second,
		// A node is silent after 0.6 s without a beat, so this is 3.6 s of a broken network. Going
		// elsewhere costs a client one resume, and no media.
		CutOffAfter: 3 * time.Second,
		// A killed node's room is usually elsewhere within 200 ms and the hub is told;
		// these retries only serve a stream that broke for another reason.
		RetryBase: 100 * time.Millisecond,
		RetryMax:  2 * time.Second,
		// A page says a few messages per second when somebody resizes its window; a
		// failover says five.
		MessagesPerSecond: 40,
		MessageBurst:      120,
		// An honest client says its first message within a round trip, so 4096 of them join at
		// 10,000 a second through a crowd that only waits. Each costs some 30 KiB.
		MaxWaiting: 4096,
		// A large office behind one address, or a balancer whose node has just died.
		MaxWaitingPerAddress: 512,
		// An offer of 64 slots has some 150 KiB and comes once; the rest is a few kilobytes
		// a second. A megabyte at once is five such offers. At this pace, frames without bytes
		// cost 1 % of a core, where they cost a whole one when nothing held them back.
		BytesPerSecond: 32 << 10,
		ByteBurst:      1 << 20,
		// An answer costs the media node 2 to 4 ms and a connection. A failover takes four offers at most.
		OffersPerSecond: 2,
		OfferBurst:      10,
		// Who waits for the store is told to ask five times a second at most, and is not to be held back for it.
		AsksPerSecond: 8,
		AskBurst:      40,
		// Somebody who joins and drops the socket leaves a place behind for the grace time of 30 s:
		// at most 80 of the 300 of a room. A person reloads a page once a second at most; an
		// application that gives all its guests one identity still lets 20 in at once.
		EntriesPerSecond: 2,
		EntryBurst:       20,
		// A reservation lasts 10 s at most, so one identity holds six of them through one signaling node: 40 Mbit/s of rooms
		// whose size nobody said. Its other rooms are placed as well, and charged for what they send.
		OpeningsPerSecond: 0.2,
		OpeningBurst:      4,
	}
}

// Validate lists every fault at once.
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
