// Package messaging carries direct messages between users at different nodes, without a broker.
//
// Rendezvous hashing of a user's name elects the user's directory, which knows at which nodes (holders) the user has clients.
// A message goes from the sender's node to the directory and on to each holder; the receipt goes straight back.
//
// For clients that drop what is not above the highest number seen of a sender's stream:
//   - An accepted message is delivered, or its sender is told that it was not.
//   - No client gets a message twice, nor two messages of one sender's stream out of order.
//   - When a node comes or goes, only registrations of users whose directory changed move.
//   - Every queue is bounded, and a slow receiver delays nobody else's messages.
//
// A Node is a state machine without goroutines: the caller gives it frames, ticks and views, and carries its frames.
package messaging

import (
	"errors"
	"fmt"
	"time"
)

// UserID is unique in the cluster.
type UserID string

// Message has a Seq that grows in its Stream, a life of the sender's program.
type Message struct {
	From   UserID
	Name   string // for people
	Stream string
	Seq    uint64
	Kind   string
	Body   []byte
	Room   string // only for this room's clients; empty: all
	At     int64  // Unix milliseconds
}

const messageOverhead = 128

func (m *Message) size() int {
	return messageOverhead + len(m.From) + len(m.Name) + len(m.Stream) + len(m.Kind) + len(m.Body) + len(m.Room)
}

// State is a message's.
type State string

// All but StateAccepted are final.
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
	Room string
	Hand func(Message)
	Tell func(Status) // of what it sent
	// Trusted is not bounded by MaxPerSender.
	Trusted bool
	// Resumed has had another connection before, and may lack what was delivered to the user's other clients meanwhile.
	Resumed bool

	// Guarded by the Node.
	closed bool
	opened time.Time
	levels map[source]uint64 // the last batch that was handed out here
}

// All are ErrFull.
var (
	ErrFull         = errors.New("too many messages wait")
	ErrSenderFull   = fmt.Errorf("%w for answers to this sender: wait for some of them", ErrFull)
	ErrReceiverFull = fmt.Errorf("%w for this receiver: try again later", ErrFull)
	ErrNodeFull     = fmt.Errorf("%w at this node: try again later", ErrFull)
)

// Transport sends or loses a frame. It must neither block nor call the Node.
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

	// Most retries mean a dead node.
	RetryAfter time.Duration
	// For who is online and has no client: pages resume within a second or two.
	HoldFor time.Duration
	// From acceptance to gave_up; a death takes gossip less.
	Patience time.Duration
	// For answers of the user's other clients before the next batch is sent.
	OthersFor time.Duration
	// What a client may lack is kept. The first repetition; the next ones come after twice the time each.
	RepeatAfter time.Duration
	// Nodes that were frozen or cut off are back by then, or their clients have resumed elsewhere.
	KeepFor time.Duration
	// For unsettled directories.
	SettleFor time.Duration
	// For answers to registrations.
	AckAfter time.Duration

	MaxPerSender   int // waiting messages
	MaxPerReceiver int
	MaxBytes       int // of all waiting messages
	MaxKeptBytes   int // of all kept ones
	MaxUnanswered  int // to one user's clients here
}

// DefaultConfig is for tens of thousands of users.
func DefaultConfig() Config {
	return Config{
		Now:            time.Now,
		RetryAfter:     2 * time.Second,
		HoldFor:        3 * time.Second,
		Patience:       20 * time.Second,
		OthersFor:      500 * time.Millisecond,
		RepeatAfter:    500 * time.Millisecond,
		KeepFor:        time.Minute,
		SettleFor:      3 * time.Second,
		AckAfter:       time.Second,
		MaxPerSender:   64,
		MaxPerReceiver: 256,
		MaxBytes:       64 << 20,
		MaxKeptBytes:   16 << 20,
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
	backoffBase   = 25 * time.Millisecond
	backoffMax    = 400 * time.Millisecond
	againMessages = 32
	repeatMax     = 4 * time.Second
	maxRepeats    = 8
	// Of one client: one for each node that sends to it. Beyond that all are forgotten, and the client drops what comes again.
	maxLevels = 4096
	// While views differ; then the sender retries.
	maxHops         = 2
	rememberedViews = 16
)
