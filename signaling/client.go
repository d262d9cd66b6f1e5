package signaling

import (
	"context"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

func (s *session) handle(ctx context.Context, next inbound) (ending, bool) {
	if next.last {
		return endingOf(next.err), true
	}
	if next.err != nil {
		s.socket.send(faultOf(next.err))
		return ending{}, false
	}
	if (s.inNoRoom() || s.waits()) && !roomless(next.message) {
		s.socket.send(faultOf(errInNoRoom))
		return ending{}, false
	}
	switch m := next.message.(type) {
	case *wire.Offer:
		if !s.offers.Allow() || s.server.limits.Offer(*s.counted) != nil {
			fault := faultOf(errManyOffers)
			s.socket.send(&wire.OfferRejected{ID: m.ID, Code: fault.Code, Message: fault.Message, Epoch: s.pin.Fence.Epoch})
			break
		}
		s.known.unanswered, s.known.offered = m, true
		s.say(offerMessage(m, s.known.slots))
	case *wire.View:
		s.known.view = m
		s.say(viewMessage(m))
	case *wire.Mute:
		if !m.Muted && !mayPublish(s.who, m.Source) {
			s.socket.send(faultOf(errNotPublished))
			break
		}
		s.known.mute(m.Source, m.Muted)
		s.known.unsaid[m.Source] = s.link == nil
		s.shown.Store(s.shows())
		s.say(muteMessage(m.Source, m.Muted))
	case *wire.Say:
		s.chat(m)
	case *wire.Migrated:
		s.migrated(m)
	case *wire.Stalled:
		s.server.hub.stalled(s, m.Epoch)
	case *wire.Refresh:
		s.say(refreshMessage(m))
	case *wire.AskICEServers:
		s.giveICEServers()
	case *wire.Ping:
		s.logPath(m.Path)
		s.socket.send(&wire.Pong{T: m.T})
	case *wire.Leave:
		return ending{code: websocket.StatusNormalClosure, reason: "left", leave: s.keepPlace(ctx, m)}, true
	default:
		if err := s.grantRequest(ctx, m); err != nil {
			s.socket.send(faultOf(err))
		}
	}
	return ending{}, false
}

func (s *session) grantRequest(ctx context.Context, next wire.Message) error {
	switch m := next.(type) {
	case *wire.Rename:
		return s.rename(m)
	case *wire.Watch:
		return s.watch(m)
	case *wire.Received:
		s.received(m)
		return nil
	case *wire.SendMessage:
		s.message(m)
		return nil
	case *wire.Hand, *wire.React:
		return s.express(m)
	case *wire.Moderate:
		return s.moderate(ctx, m)
	case *wire.SetDoor, *wire.LetIn, *wire.TurnAway:
		return s.atTheDoor(ctx, m)
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
