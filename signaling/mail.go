package signaling

import (
	"errors"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/people/messaging"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

var errNoMessages = errors.New("the token does not allow direct messages here (canMessage, or canPublishData inside a room)")

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

func (s *session) mayMessage() bool { return messageScope(s.who) != "" }

func (s *session) openMessages() {
	if s.unseen() {
		return
	}
	s.mail = &messaging.Client{
		User: messaging.UserID(s.who.Identity), Room: string(s.who.Room), Resumed: s.resumes,
		Hand: func(m messaging.Message) { s.socket.send(userMessage(m)) },
		Tell: func(status messaging.Status) { s.socket.send(messageState(status)) },
	}
	s.server.parts.Messages.Open(s.mail)
}

func (s *session) closeMessages() {
	if s.mail != nil {
		s.server.parts.Messages.Close(s.mail)
		s.mail = nil
	}
}

func userMessage(m messaging.Message) *wire.UserMessage {
	return &wire.UserMessage{
		From: string(m.From), Name: m.Name, Kind: wire.MessageKind(m.Kind), Body: m.Body, Stream: m.Stream, Seq: m.Seq, Room: m.Room, At: m.At,
	}
}

func messageState(status messaging.Status) *wire.MessageState {
	return &wire.MessageState{To: string(status.To), Stream: status.Stream, Seq: status.Seq, State: string(status.State)}
}

func (s *session) message(m *wire.SendMessage) {
	scope := messageScope(s.who)
	out := messaging.Message{
		From: messaging.UserID(s.who.Identity), Name: s.who.Name, Stream: m.Stream, Seq: m.Seq, Kind: string(m.Kind), Body: m.Body,
		At: time.Now().UnixMilli(),
	}
	if scope == wire.ScopeRoom {
		out.Room = string(s.who.Room)
	}
	seen := make(map[string]bool, len(m.To))
	for _, to := range m.To {
		if seen[to] {
			continue
		}
		seen[to] = true
		var err error
		switch {
		case scope == "" || s.mail == nil:
			err = errNoMessages
		case !s.server.limits.Direct(s.person()):
			err = errFlood
		case scope == wire.ScopeRoom && !s.meets(to):
			// Without a word of who is elsewhere.
			s.socket.send(&wire.MessageState{To: to, Stream: m.Stream, Seq: m.Seq, State: string(messaging.StateOffline)})
		default:
			err = s.server.parts.Messages.Submit(s.mail, messaging.UserID(to), out)
		}
		if err != nil {
			fault := faultOf(err)
			s.socket.send(&wire.MessageState{To: to, Stream: m.Stream, Seq: m.Seq, State: "refused", Code: fault.Code, Message: fault.Message})
		}
	}
}

// meets: the client was told of the user by the roster.
func (s *session) meets(user string) bool {
	return slices.ContainsFunc(s.known.roster, func(p *control.Peer) bool { return p.GetIdentity() == user })
}

func (s *session) received(m *wire.Received) {
	if s.mail == nil {
		return
	}
	for _, mark := range m.UpTo {
		s.server.parts.Messages.Received(s.mail, messaging.UserID(mark.From), mark.Stream, mark.Seq)
	}
}
