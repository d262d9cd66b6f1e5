package signaling

import (
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/people/messaging"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/translate"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

var errNoMessages = fault.Denied("the token does not allow direct messages here (canMessage, or canPublishData inside a room)")

// messageScope is whom a session may write to. The hidden, who would be seen, write to nobody.
func messageScope(who access.Session) wire.Scope {
	switch {
	case who.Hidden:
		return ""
	case who.CanMessage:
		return wire.ScopeAnywhere
	case who.CanChat && who.Room != "":
		return wire.ScopeRoom
	default:
		return ""
	}
}

// mail is a session's part in direct messages. The session's loop owns it.
type mail struct {
	messages Messenger
	limits   *limits.Limits
	socket   *socket
	client   *messaging.Client // nil before open, and for people whom nobody sees
}

func (m *mail) open(who access.Session, resumed bool) {
	if unseen(who) {
		return
	}
	m.client = &messaging.Client{
		User: messaging.UserID(who.Identity), Room: string(who.Room), Resumed: resumed,
		Hand: func(message messaging.Message) { m.socket.send(translate.UserMessage(message)) },
		Tell: func(status messaging.Status) { m.socket.send(translate.MessageState(status)) },
	}
	m.messages.Open(m.client)
}

func (m *mail) close() {
	if m.client != nil {
		m.messages.Close(m.client)
		m.client = nil
	}
}

// submit passes a message on to each of its receivers, and tells the client what becomes of it. A session that may write inside its room
// only reaches the people of the roster.
func (m *mail) submit(who access.Session, by limits.Person, roster []*control.Peer, message *wire.SendMessage) {
	scope := messageScope(who)
	out := messaging.Message{
		From: messaging.UserID(who.Identity), Name: who.Name, Stream: message.Stream, Seq: message.Seq, Kind: string(message.Kind), Body: message.Body,
		At: time.Now().UnixMilli(),
	}
	if scope == wire.ScopeRoom {
		out.Room = string(who.Room)
	}
	seen := make(map[string]bool, len(message.To))
	for _, to := range message.To {
		if seen[to] {
			continue
		}
		seen[to] = true
		var err error
		switch {
		case scope == "" || m.client == nil:
			err = errNoMessages
		case !m.limits.Direct(by):
			err = limits.ErrFlood
		case scope == wire.ScopeRoom && !meets(roster, to):
			// Without a word of who is elsewhere.
			m.socket.send(&wire.MessageState{To: to, Stream: message.Stream, Seq: message.Seq, State: string(messaging.StateOffline)})
		default:
			err = m.messages.Submit(m.client, messaging.UserID(to), out)
		}
		if err != nil {
			fault := reply.Of(err)
			m.socket.send(&wire.MessageState{To: to, Stream: message.Stream, Seq: message.Seq, State: "refused", Code: fault.Code, Message: fault.Message})
		}
	}
}

// meets: the client was told of the user by the roster.
func meets(roster []*control.Peer, user string) bool {
	return slices.ContainsFunc(roster, func(p *control.Peer) bool { return p.GetIdentity() == user })
}

func (m *mail) received(marks *wire.Received) {
	if m.client == nil {
		return
	}
	for _, mark := range marks.UpTo {
		m.messages.Received(m.client, messaging.UserID(mark.From), mark.Stream, mark.Seq)
	}
}
