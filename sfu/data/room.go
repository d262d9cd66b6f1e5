package data

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// Kind says what becomes of a message that is lost on its way.
type Kind int

// The kinds.
const (
	// Reliable messages are sent again, and come in order.
	Reliable Kind = iota
	// Lossy messages are not.
	Lossy
)

const (
	// A person may send so much in all connections to a node. Each message counts messageBytes more, for what it costs beside its bytes.
	personBytesPerSecond = 128 << 10
	personBurstBytes     = 128 << 10
	messageBytes         = 512
	// A room passes on so much to all of its people at a node.
	roomBytesPerSecond = 8 << 20
	roomBurstBytes     = 16 << 20
	// So much may wait for one receiver.
	reliableQueueBytes = 512 << 10
	lossyQueueBytes    = 32 << 10
)

// Message is on its way to people of a room.
type Message struct {
	Kind Kind
	// From is the id of the sending peer, which does not get it; empty: it comes from a server.
	From  string
	Bytes []byte
	To    Destinations
}

// isFor reports whether a peer is to get the message.
func (m *Message) isFor(peer, identity string) bool {
	if peer == m.From {
		return false
	}
	if len(m.To.Identities) == 0 && len(m.To.SIDs) == 0 {
		return true
	}
	return slices.Contains(m.To.Identities, identity) || slices.Contains(m.To.SIDs, sidPrefix+peer)
}

// Tally counts the messages of all rooms of a node. It is safe for concurrent use.
type Tally struct {
	// Sent are messages to receivers.
	Sent atomic.Uint64
	// Slow were not sent because a receiver did not take what was sent before, and Missed because it has no open channel.
	Slow, Missed atomic.Uint64
	// Flooded are lossy messages beyond what a person may send or a room passes on.
	Flooded atomic.Uint64
	// Unspread are messages that the links to a room's other nodes did not take.
	Unspread atomic.Uint64
	// Refused are messages of people who may send none, and those that cannot be read.
	Refused atomic.Uint64
}

// Room passes messages on among the people of a room who are connected to this node. It is safe for concurrent use.
type Room struct {
	tally *Tally
	// passOn hands a message to the room's other nodes. It must not wait.
	passOn func(Message)
	// passing bounds what all receivers are sent.
	passing *rate.Limiter

	mu sync.RWMutex // guards the fields below
	// clients are by peer: a peer's newest connection.
	clients map[string]*client
	people  map[string]*person // by identity
}

// person bounds what somebody sends in all connections.
type person struct {
	sending *rate.Limiter
	clients int
}

// NewRoom returns a room without clients.
func NewRoom(tally *Tally, passOn func(Message)) *Room {
	return &Room{
		tally: tally, passOn: passOn, passing: rate.NewLimiter(roomBytesPerSecond, roomBurstBytes),
		clients: map[string]*client{}, people: map[string]*person{},
	}
}

func (r *Room) join(c *client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.people[c.who.Identity]
	if p == nil {
		p = &person{sending: rate.NewLimiter(personBytesPerSecond, personBurstBytes)}
		r.people[c.who.Identity] = p
	}
	p.clients++
	c.sending = p.sending
	r.clients[c.who.Peer] = c
}

func (r *Room) leave(c *client) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.clients[c.who.Peer] == c {
		delete(r.clients, c.who.Peer)
	}
	p := r.people[c.who.Identity]
	if p.clients--; p.clients == 0 {
		delete(r.people, c.who.Identity)
	}
}

// Drop ends the messages to a peer whose place in the room is another node's by now.
func (r *Room) Drop(peer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.clients, peer)
}

// take handles a message of a client. It waits if the message is reliable and beyond a bound.
func (r *Room) take(ctx context.Context, c *client, kind Kind, message []byte) {
	if !c.who.MaySend() || len(message) > MaxMessageBytes {
		r.tally.Refused.Add(1)
		return
	}
	stamped, to, err := Stamp(message, c.who.Sender)
	if err != nil {
		r.tally.Refused.Add(1)
		return
	}
	m := Message{Kind: kind, From: c.who.Peer, Bytes: stamped, To: to}
	if !spend(ctx, c.sending, kind, len(stamped)+messageBytes) {
		r.tally.Flooded.Add(1)
		return
	}
	receivers := r.receivers(&m)
	if !spend(ctx, r.passing, kind, len(receivers)*(len(stamped)+messageBytes)) {
		r.tally.Flooded.Add(1)
		return
	}
	r.send(&m, receivers)
	r.passOn(m)
}

// spend reports whether a message is within a bound. A reliable one waits until it is.
func spend(ctx context.Context, from *rate.Limiter, kind Kind, cost int) bool {
	cost = min(cost, from.Burst())
	if kind == Lossy {
		return from.AllowN(time.Now(), cost)
	}
	return from.WaitN(ctx, cost) == nil
}

// Deliver sends a message that comes from another node, or from a server. It waits for nothing: what is beyond the room's bound is
// dropped.
func (r *Room) Deliver(m Message) {
	receivers := r.receivers(&m)
	if !r.passing.AllowN(time.Now(), min(len(receivers)*(len(m.Bytes)+messageBytes), roomBurstBytes)) {
		r.tally.Flooded.Add(1)
		return
	}
	r.send(&m, receivers)
}

func (r *Room) receivers(m *Message) []*client {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var receivers []*client
	for _, c := range r.clients {
		if m.isFor(c.who.Peer, c.who.Identity) {
			receivers = append(receivers, c)
		}
	}
	return receivers
}

func (r *Room) send(m *Message, to []*client) {
	for _, c := range to {
		switch c.send(m.Kind, m.Bytes) {
		case sendSent:
			r.tally.Sent.Add(1)
		case sendSlow:
			r.tally.Slow.Add(1)
		case sendMissed:
			r.tally.Missed.Add(1)
		}
	}
}
