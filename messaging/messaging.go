// Package messaging carries direct messages between users who are connected to different nodes, without a broker.
//
// The directory of a user is the node that rendezvous hashing of the user's name elects; it knows at which nodes
// (holders) the user has clients. A message goes from the sender's node to the directory, from there to each holder,
// and the holder's receipt goes straight back: three frames, however many nodes there are.
//
// It promises, for clients that drop what is not above the highest number seen of a sender's stream:
//   - A message that was accepted is delivered, or its sender is told that it was not.
//   - No client gets a message twice, nor two messages of one sender's stream out of order.
//   - When a node comes or goes, only the registrations of users whose directory changed move.
//   - Every queue is bounded, and a receiver who does not keep up delays nobody else's messages.
//
// A Node is a state machine without goroutines: the caller gives it frames, ticks and views, and carries its frames. It
// does not know sockets, tokens or RPC.
package messaging

import (
	"errors"
	"fmt"
	"time"
)

// UserID is a user in the whole cluster.
type UserID string

// Message is from one user. Its Seq grows in a Stream: one life of the sender's program.
type Message struct {
	From   UserID
	Name   string // the sender's, for people
	Stream string
	Seq    uint64
	Kind   string
	Body   []byte
	Room   string // only for clients in this room; empty: all
	At     int64  // Unix milliseconds of the sender's node
}

const messageOverhead = 128

func (m *Message) size() int {
	return messageOverhead + len(m.From) + len(m.Name) + len(m.Stream) + len(m.Kind) + len(m.Body) + len(m.Room)
}

// State is what became of a message.
type State string

// The states. All but StateAccepted are final.
const (
	StateAccepted  State = "accepted"
	StateDelivered State = "delivered" // at least one client has it
	StateOffline   State = "offline"   // no client may get it
	StateGaveUp    State = "gave_up"   // no answer in time: it may have arrived
)

// Status is of one message.
type Status struct {
	To     UserID
	Stream string
	Seq    uint64
	State  State
}

// Client is one connection here. Hand and Tell must neither block nor call the Node.
type Client struct {
	User UserID
	Room string // if it is in one
	Hand func(Message)
	Tell func(Status) // of what it sent
	// Trusted is not bounded by MaxPerSender: an operator's notice to a room.
	Trusted bool

	closed bool // guarded by the Node
}

// Refusals of Submit; all are ErrFull.
var (
	ErrFull         = errors.New("too many messages wait")
	ErrSenderFull   = fmt.Errorf("%w for answers to this sender: wait for some of them", ErrFull)
	ErrReceiverFull = fmt.Errorf("%w for this receiver: try again later", ErrFull)
	ErrNodeFull     = fmt.Errorf("%w at this node: try again later", ErrFull)
)

// Transport sends a frame to another node, or loses it. It must neither block nor call the Node.
type Transport interface {
	Send(to Peer, f Frame)
}

// Presence is asked whether a user is online. It must not block; Node.Online takes the answer.
type Presence interface {
	Ask(user UserID)
}

// Config tunes a Node.
type Config struct {
	Now func() time.Time

	// Longer than a round trip to a phone: most retries mean that a node died.
	RetryAfter time.Duration
	// An online user without a client is between nodes: pages resume within a second or two.
	HoldFor time.Duration
	// From acceptance to gave_up: longer than gossip needs for a death.
	Patience time.Duration
	// For the user's other clients, straggles times: in all longer than noticing a death.
	StragglersFor time.Duration
	// For directories that lack registrations.
	SettleFor time.Duration
	// For answers to registrations.
	AckAfter time.Duration

	MaxPerSender   int // waiting messages
	MaxPerReceiver int
	MaxBytes       int // of all waiting messages
	MaxUnanswered  int // to one user's clients here
}

// DefaultConfig is for nodes with tens of thousands of users.
func DefaultConfig() Config {
	return Config{
		Now:            time.Now,
		RetryAfter:     2 * time.Second,
		HoldFor:        3 * time.Second,
		Patience:       20 * time.Second,
		StragglersFor:  500 * time.Millisecond,
		SettleFor:      3 * time.Second,
		AckAfter:       time.Second,
		MaxPerSender:   64,
		MaxPerReceiver: 256,
		MaxBytes:       64 << 20,
		MaxUnanswered:  64,
	}
}

const (
	// A client's outgoing queue has 256 places.
	batchMessages = 16
	batchBytes    = 64 << 10
	// 16 bytes each.
	batchRegistrations = 2000
	// From the first refusal to the last.
	backoffBase = 25 * time.Millisecond
	backoffMax  = 400 * time.Millisecond
	straggles   = 6
	// Forwards while views differ; then the sender retries.
	maxHops         = 2
	rememberedViews = 16
)
