package signaling

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/loglimit"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/people/waitlist"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/door"
	"github.com/holdfast-rtc/holdfast/signaling/fault"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/translate"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

func (s *session) handle(ctx context.Context, next inbound) (ending, bool) {
	if next.last {
		return endingOf(next.err), true
	}
	if leave, ok := next.message.(*wire.Leave); ok && next.err == nil {
		return ending{code: websocket.StatusNormalClosure, reason: "left", leave: s.line.keepPlace(ctx, leave)}, true
	}
	err := next.err
	if err == nil {
		err = s.obey(ctx, next)
	}
	if err != nil {
		s.socket.refuse(next.request, err)
	}
	return ending{}, false
}

// obey does what a client's message asks for. It returns why the message is refused, unless that is known only later: then the answer follows.
func (s *session) obey(ctx context.Context, next inbound) error {
	if (s.inNoRoom() || s.line.waits()) && !roomless(next.message) {
		return errInNoRoom
	}
	switch m := next.message.(type) {
	case *wire.Offer:
		if !s.offers.Allow() || s.tellQuota(s.server.limits.Offer(*s.counted)) != nil {
			fault := reply.Of(errManyOffers)
			s.socket.send(&wire.OfferRejected{ID: m.ID, Code: fault.Code, Message: fault.Message, Epoch: s.pin.Fence.Epoch})
			break
		}
		s.known.unanswered, s.known.offered = m, true
		s.say(translate.Offer(m, s.known.slots))
	case *wire.View:
		s.known.view = m
		s.say(translate.View(m))
	case *wire.Mute:
		if !m.Muted && !mayPublish(s.who, m.Source) {
			return errNotPublished
		}
		s.known.mute(m.Source, m.Muted)
		s.known.unsaid[m.Source] = s.link == nil
		s.seat.shown.Store(s.known.shows(s.who))
		s.say(translate.Mute(m.Source, m.Muted))
	case *wire.Say:
		return s.chat(m)
	case *wire.Migrated:
		s.migrated(m)
	case *wire.Stalled:
		s.server.parts.Metrics.Stalled()
		s.server.hub.ReportStall(&s.seat, m.Epoch)
	case *wire.Refresh:
		s.say(translate.Refresh(m))
	case *wire.AskICEServers:
		s.giveICEServers()
	case *wire.Ping:
		s.countWay(m.Path)
		logPath(s.log, s.server.pathLogs, m.Path, s.place.Node)
		s.socket.send(&wire.Pong{T: m.T})
	default:
		return s.grantRequest(ctx, next)
	}
	return nil
}

func (s *session) grantRequest(ctx context.Context, next inbound) error {
	switch m := next.message.(type) {
	case *wire.Rename:
		return s.rename(m)
	case *wire.Watch:
		return s.watching.watch(s.who, s.person(), m)
	case *wire.Received:
		s.mail.received(m)
		return nil
	case *wire.SendMessage:
		s.mail.submit(s.who, s.person(), s.known.roster.Peers(), m)
		return nil
	case *wire.Hand, *wire.React:
		return s.express(m)
	case *wire.Moderate:
		return s.moderate(ctx, m, next.request)
	case *wire.SetDoor, *wire.LetIn, *wire.TurnAway:
		return s.atTheDoor(ctx, m, next.request)
	default:
		return errOrder
	}
}

func roomless(m wire.Message) bool {
	switch m.(type) {
	case *wire.Watch, *wire.SendMessage, *wire.Received, *wire.Ping, *wire.Leave:
		return true
	default:
		return false
	}
}

// catchMessage handles a client's message. If the message breaks its decoding or its handling, the session ends, and its person is remembered.
func (s *session) catchMessage(ctx context.Context, next inbound) (how ending, done bool) {
	caught, broken := errors.AsType[*panics.Error](next.err)
	if !broken {
		if caught = panics.Catch(func() { how, done = s.handle(ctx, next) }); caught == nil {
			return how, done
		}
	}
	s.server.panics.Strike(strikeName(s.who))
	return s.endBroken(caught, "a client's message broke its handling: session closed"), true
}

var (
	errInNoRoom   = fmt.Errorf("%w: this connection is in no room yet; it may watch, message, ping and leave", wire.ErrMalformed)
	errManyOffers = fault.New(wire.CodeTooManyMessages, "too many offers", "Slow down.")
	errNoChat     = fault.Denied("the token does not allow writing to the chat (canPublishData)")
	errNoRename   = fault.Denied("the token does not allow changing the name (canUpdateOwnMetadata)")
	errUnseen     = fault.Detailed(wire.CodeNotAllowed, "who is hidden raises no hand and sends no reaction: the others would see it", "")
)

// Without a link the line is lost; the client misses its echo and repeats it.
func (s *session) chat(m *wire.Say) error {
	if !s.who.CanChat {
		return errNoChat
	}
	if !s.server.limits.Chat(s.person()) {
		return limits.ErrFlood
	}
	s.say(&control.PeerMessage{Message: &control.PeerMessage_Say{Say: &control.Say{Text: m.Text, Id: m.ID}}})
	return nil
}

func (s *session) rename(m *wire.Rename) error {
	if !s.who.CanRename {
		return errNoRename
	}
	name := access.SelfChosenName(m.Name)
	if name == "" {
		return fmt.Errorf("%w: nothing of the name can be shown", wire.ErrMalformed)
	}
	s.who.Name = name
	s.say(translate.Rename(name))
	return nil
}

func (s *session) express(m wire.Message) error {
	if s.who.Hidden {
		return errUnseen
	}
	if !s.server.limits.Express(s.person()) {
		return limits.ErrFlood
	}
	switch m := m.(type) {
	case *wire.Hand:
		s.known.hand = nil
		if s.link == nil {
			s.known.hand = m
		}
		s.say(translate.Hand(m))
	case *wire.React:
		s.say(&control.PeerMessage{Message: &control.PeerMessage_React{React: &control.React{Emoji: m.Emoji}}})
	}
	return nil
}

var errNotModerator = fault.Denied("this needs somebody who runs the room (roomAdmin)")

// moderate asks the room's node in the background; refusals come then.
func (s *session) moderate(ctx context.Context, m *wire.Moderate, asked wire.RequestID) error {
	if !s.who.CanModerate {
		return errNotModerator
	}
	if !s.server.limits.Moderate(s.person()) || m.Act == wire.ActAskUnmute && !s.server.limits.AskUnmute(s.person()) {
		return limits.ErrFlood
	}
	s.log.Info("moderator acts", "identity", s.who.Identity, "act", m.Act, "on", m.Peer)
	if m.Act == wire.ActEndCall {
		s.endCall(ctx, asked)
		return nil
	}
	if m.Act == wire.ActRemove {
		request := &control.RemoveRequest{Room: string(s.who.Room), Peer: string(m.Peer)}
		detached := context.WithoutCancel(ctx) // what is begun is finished
		s.work(func() {
			if err := s.server.moderation.Remove(detached, request).Err(); err != nil {
				s.socket.refuse(asked, err)
			}
		})
		return nil
	}
	request := &control.ModerateRequest{
		Room: string(s.who.Room), Act: translate.ControlAct(m.Act), Peer: string(m.Peer), Source: translate.ControlSource(m.Source), ByPeer: s.who.Peer,
	}
	if !s.who.Hidden {
		request.By = s.who.Name
	}
	if m.Act == wire.ActGiveUp {
		request.Peer = s.who.Peer
	}
	at := s.pin
	s.work(func() {
		if err := s.server.moderation.Moderate(ctx, at, request); err != nil {
			s.log.Debug("not moderated", "act", m.Act, "error", err)
			s.socket.refuse(asked, err)
		}
	})
	return nil
}

// endCall ends the call for everybody, this session included.
func (s *session) endCall(ctx context.Context, asked wire.RequestID) {
	detached := context.WithoutCancel(ctx) // what is begun is finished
	room, by := s.who.Room, s.who.Identity
	s.work(func() {
		answer, _ := s.server.moderation.EndCall(detached, room)
		if err := answer.Err(); err != nil {
			s.socket.refuse(asked, err)
			return
		}
		s.server.parts.Recorder.Record(events.Event{Kind: events.CallEnded, Room: room, By: by, About: strconv.FormatInt(time.Now().UnixNano(), 36)})
	})
}

// atTheDoor answers with line and door. Looks repeat every few seconds, so a slow store does not hold the session up.
func (s *session) atTheDoor(ctx context.Context, m wire.Message, asked wire.RequestID) error {
	var o waitlist.Order
	switch m := m.(type) {
	case *wire.SetDoor:
		o = door.OrderOf(m)
	case *wire.LetIn:
		o = waitlist.Order{Deed: waitlist.Admit, Identity: access.Identity(m.Identity)}
	case *wire.TurnAway:
		o = waitlist.Order{Deed: waitlist.Turn, Identity: access.Identity(m.Identity)}
	}
	if !s.who.CanModerate {
		return errNotModerator
	}
	if !s.server.limits.Door(s.person()) {
		return limits.ErrFlood
	}
	room := s.who.Room
	order := func() error {
		now, err := s.server.doors.Order(ctx, room, o)
		if err == nil {
			s.socket.send(door.Message(now))
		}
		return err
	}
	if o.Deed != waitlist.Look {
		return order()
	}
	s.work(func() {
		if err := order(); err != nil {
			s.socket.refuse(asked, err)
		}
	})
	return nil
}

// iceServers are a session's, with credentials that end with a connection test.
func (c *Config) iceServers(who access.Session) wire.ICEServers {
	if c.ICEServers == nil {
		return wire.ICEServers{}
	}
	servers, life := c.ICEServers(relaySession(who), endsOf(who), time.Now())
	return wire.ICEServers{ICEServers: servers, ForMs: life.Milliseconds()}
}

// relaySession is one for all joins of an identity, whose limits it has. Relays log it; it does not show who that is.
func relaySession(who access.Session) string {
	sum := sha256.Sum256([]byte(strikeName(who)))
	return hex.EncodeToString(sum[:8])
}

func (s *session) giveICEServers() {
	servers := s.server.config.iceServers(s.who)
	s.socket.send(&servers)
}

// logPath logs the way of a client's media. Clients tell at once what is not UDP, and once that there is none.
func logPath(log *slog.Logger, limit *loglimit.Limiter, path *wire.MediaPath, node ring.NodeID) {
	if path == nil {
		return
	}
	unlogged, ok := limit.Next()
	if !ok {
		return
	}
	says := "client's media goes by another way"
	if path.Way == "" {
		says = "client's media finds no way to its node"
	}
	log.Info(says, "way", path.Way, "udp", answered(path.UDP), "tcp", answered(path.TCP), "turn", answered(path.TURN), "node", node, "unlogged", unlogged)
}

func answered(by *bool) string {
	switch {
	case by == nil:
		return "not tried"
	case *by:
		return "answered"
	default:
		return "no answer"
	}
}
