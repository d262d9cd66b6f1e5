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

// UserID names a user. It is unique in the cluster.
type UserID string

// Message is one direct message. Seq grows within its Stream, and a stream is one life of the sender's program.
type Message struct {
	From UserID
	// Name is the sender's name for people to read.
	Name   string
	Stream string
	Seq    uint64
	Kind   string
	Body   []byte
	// Room limits the message to the clients in this room. If it is empty, all clients of the user get it.
	Room string
	At   int64 // Unix milliseconds
}

const messageOverhead = 128

func (m *Message) size() int {
	return messageOverhead + len(m.From) + len(m.Name) + len(m.Stream) + len(m.Kind) + len(m.Body) + len(m.Room)
}

// State says what became of a message.
type State string

// All states but StateAccepted are final.
const (
	StateAccepted State = "accepted"
	// At least one client has the message.
	StateDelivered State = "delivered"
	// No client of the user may get the message.
	StateOffline State = "offline"
	// No answer came in time, so the message may have arrived or not.
	StateGaveUp State = "gave_up"
)

// Status tells a sender the state of one message.
type Status struct {
	To     UserID
	Stream string
	Seq    uint64
	State  State
}

// Client is one connection to this node. Hand and Tell must neither block nor call the Node.
type Client struct {
	User UserID
	Room string
	Hand func(Message)
	// Tell is told the states of the messages that the client has sent.
	Tell func(Status)
	// Trusted exempts the client from MaxPerSender.
	Trusted bool
	// Resumed says that the client had an earlier connection, so it may lack messages that the user's other clients
	// got meanwhile.
	Resumed bool

	// The fields below are guarded by the Node's mu.
	closed bool
	opened time.Time
	// levels has the number of the last batch of each source that was handed to this client.
	levels map[source]uint64
}

// Each of these errors wraps ErrFull.
var (
	ErrFull         = errors.New("too many messages wait")
	ErrSenderFull   = fmt.Errorf("%w for answers to this sender: wait for some of them", ErrFull)
	ErrReceiverFull = fmt.Errorf("%w for this receiver: try again later", ErrFull)
	ErrNodeFull     = fmt.Errorf("%w at this node: try again later", ErrFull)
)

// Transport sends frames to other nodes, and may lose them. Send must neither block nor call the Node.
type Transport interface {
	Send(to Peer, f Frame)
}

// Presence says whether a user is online. Ask must not block; the answer comes by Node.Online.
type Presence interface {
	Ask(user UserID)
}

// Config has the times and bounds of a Node.
type Config struct {
	Now func() time.Time

	// RetryAfter is when an unanswered batch is sent again. By then a node has most likely died.
	RetryAfter time.Duration
	// HoldFor is how long a message waits for a user who is online and has no client. A page resumes within a second
	// or two.
	HoldFor time.Duration
	// Patience is the longest time from accepted to gave_up. Gossip notices a death sooner.
	Patience time.Duration
	// OthersFor is how long the next batch waits for the answers of the user's other clients.
	OthersFor time.Duration
	// RepeatAfter is when a kept batch is repeated for the first time. Each later repetition comes after twice the
	// time.
	RepeatAfter time.Duration
	// KeepFor is how long a batch is kept. By then nodes that were frozen or cut off are back, or their clients have
	// resumed elsewhere.
	KeepFor time.Duration
	// SettleFor is how long an origin waits for a directory that does not know yet.
	SettleFor time.Duration
	// AckAfter is when an unanswered registration is sent again.
	AckAfter time.Duration

	// MaxPerSender and MaxPerReceiver bound the waiting messages.
	MaxPerSender   int
	MaxPerReceiver int
	// MaxBytes bounds all waiting messages.
	MaxBytes int
	// MaxKeptBytes bounds all kept messages.
	MaxKeptBytes int
	// MaxUnanswered bounds the messages that one user's clients here have been handed and have not answered.
	MaxUnanswered int
}

// DefaultConfig suits a node with tens of thousands of users.
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
	// A batch must fit into a client's outgoing queue, which has 256 places.
	batchMessages = 16
	batchBytes    = 64 << 10
	// A registration takes 16 bytes.
	batchRegistrations = 2000
	// These are the first and the longest pause after a holder or a directory refused a batch.
	backoffBase   = 25 * time.Millisecond
	backoffMax    = 400 * time.Millisecond
	againMessages = 32
	repeatMax     = 4 * time.Second
	maxRepeats    = 8
	// maxLevels bounds the sources remembered for one client, one for each node that sends to it. Beyond it all are
	// forgotten. The client then drops the messages that come a second time.
	maxLevels = 4096
	// Directories forward a batch while views differ, this often at most. After that the origin sends it again.
	maxHops         = 2
	rememberedViews = 16
)
