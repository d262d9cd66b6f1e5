package peer

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"sync"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// waitingMessages is the server's limit of unanswered messages.
const waitingMessages = 64

// Messages sends and receives direct messages as web/static/holdfast/messages.js does. It repeats messages without a final
// state on the next connection, in order, and drops what is not above the highest number of its stream.
type Messages struct {
	stream string
	take   func(from string, body json.RawMessage)
	told   func(to string, seq uint64, state string)
	wake   chan struct{}

	mu      sync.Mutex // guards the fields below
	open    bool
	seq     uint64
	letters []*wire.SendMessage // without a final state
	unsaid  int                 // how many of the last letters this connection has not sent
	marks   map[streamOf]uint64
	due     map[streamOf]struct{}
}

type streamOf struct{ from, stream string }

// NewMessages makes the messages of one peer. It calls take once a message and told with the final state of each sent one.
// Both must be quick and must not call Messages.
func NewMessages(take func(from string, body json.RawMessage), told func(to string, seq uint64, state string)) *Messages {
	return &Messages{
		stream: rand.Text(), take: take, told: told, wake: make(chan struct{}, 1),
		marks: make(map[streamOf]uint64), due: make(map[streamOf]struct{}),
	}
}

// Send queues a message to one user, false when too many are unanswered. It first calls sent with the message's number.
func (m *Messages) Send(to string, body json.RawMessage, sent func(seq uint64)) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.letters) >= waitingMessages {
		return false
	}
	m.seq++
	sent(m.seq)
	m.letters = append(m.letters, &wire.SendMessage{To: wire.List[string]{to}, Kind: wire.MessageApp, Body: body, Stream: m.stream, Seq: m.seq})
	m.unsaid++
	m.ring()
	return true
}

func (m *Messages) ring() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *Messages) heard(message wire.Message) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch said := message.(type) {
	case *wire.Joined, *wire.Resumed, *wire.Connected:
		m.open, m.unsaid = true, len(m.letters)
		m.ring()
	case *wire.UserMessage:
		key := streamOf{said.From, said.Stream}
		fresh := said.Seq > m.marks[key]
		m.marks[key] = max(m.marks[key], said.Seq)
		if m.due[key] = struct{}{}; fresh {
			m.take(said.From, said.Body)
		}
		m.ring()
	case *wire.MessageState:
		at := slices.IndexFunc(m.letters, func(l *wire.SendMessage) bool { return l.Seq == said.Seq })
		if said.Stream != m.stream || said.State == "accepted" || at < 0 {
			return
		}
		m.letters = slices.Delete(m.letters, at, at+1)
		m.unsaid = min(m.unsaid, len(m.letters))
		m.told(said.To, said.Seq, said.State)
	}
}

// The server repeats what was not acknowledged.
func (m *Messages) lost() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.open = false
	clear(m.due)
}

// ringing is nil without messages.
func (m *Messages) ringing() <-chan struct{} {
	if m == nil {
		return nil
	}
	return m.wake
}

func (m *Messages) outgoing() []wire.Message {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.open {
		return nil
	}
	var out []wire.Message
	if len(m.due) > 0 {
		marks := make(wire.List[wire.StreamMark], 0, len(m.due))
		for key := range m.due {
			marks = append(marks, wire.StreamMark{From: key.from, Stream: key.stream, Seq: m.marks[key]})
		}
		clear(m.due)
		out = append(out, &wire.Received{UpTo: marks})
	}
	for _, l := range m.letters[len(m.letters)-m.unsaid:] {
		out = append(out, l)
	}
	m.unsaid = 0
	return out
}

func (p *Peer) sayMessages(ctx context.Context, socket *websocket.Conn) error {
	for _, message := range p.opts.Messages.outgoing() {
		if err := p.write(ctx, socket, message); err != nil {
			return err
		}
	}
	return nil
}
