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

// UserID names a user in the whole cluster.
type UserID string

// Message is from one user. Its numbers grow in a Stream, which is one life of the sender's program.
type Message struct {
	From   UserID
	Name   string // of the sender, shown to people
	Stream string
	Seq    uint64
	Kind   string
	Body   []byte
	Room   string // only clients in this room get it; empty for all
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
	StateDelivered State = "delivered" // at least one client of the receiver has it
	StateOffline   State = "offline"   // the receiver has no client that may get it
	StateGaveUp    State = "gave_up"   // nobody answered in time: it may have arrived
)

// Status is of one message to one receiver.
type Status struct {
	To     UserID
	Stream string
	Seq    uint64
	State  State
}

// Client is one connection of a user to this node. Hand and Tell must neither block nor call the Node.
type Client struct {
	User UserID
	Room string // that it is in, if any
	Hand func(Message)
	Tell func(Status) // of what it sent
	// Trusted is not bounded by Config.MaxPerSender, as an operator's notice to a room.
	Trusted bool

	closed bool // guarded by the Node
}

// The refusals of Submit. All are ErrFull.
var (
	ErrFull         = errors.New("too many messages wait")
	ErrSenderFull   = fmt.Errorf("%w for answers to this sender: wait for some of them", ErrFull)
	ErrReceiverFull = fmt.Errorf("%w for this receiver: try again later", ErrFull)
	ErrNodeFull     = fmt.Errorf("%w at this node: try again later", ErrFull)
)

// Transport takes a frame to another node, or loses it. It must neither block nor call the Node.
type Transport interface {
	Send(to Peer, f Frame)
}

// Presence is asked whether a user is online in the cluster. It must not block; the answer goes to Node.Online.
type Presence interface {
	Ask(user UserID)
}

// Config tunes a Node.
type Config struct {
	Now func() time.Time

	// An answer takes a round trip to the receiver's phone; most retries find that a node died.
	RetryAfter time.Duration
	// A user who is online and nowhere is between two nodes: a page resumes within a second or two.
	HoldFor time.Duration
	// From acceptance to gave_up: longer than gossip needs to notice a death.
	Patience time.Duration
	// Of waiting for the other clients of a user when one has answered; straggles times. In all it takes longer than
	// noticing a death.
	StragglersFor time.Duration
	// How long a message waits for a directory that was not told all registrations.
	SettleFor time.Duration
	// Of waiting for what other nodes say about registrations.
	AckAfter time.Duration

	MaxPerSender   int // messages that wait
	MaxPerReceiver int
	MaxBytes       int // of all messages that wait
	MaxUnanswered  int // messages handed to one user's clients here and not answered
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
	// A client's queue of outgoing frames has 256 places.
	batchMessages = 16
	batchBytes    = 64 << 10
	// 16 bytes each.
	batchRegistrations = 2000
	// From the first refusal to the last.
	backoffBase = 25 * time.Millisecond
	backoffMax  = 400 * time.Millisecond
	straggles   = 6
	// A message is forwarded while views differ; then its sender tries again.
	maxHops = 2
	// Views that a node may lag behind.
	rememberedViews = 16
)
