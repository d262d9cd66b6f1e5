package signaling

import (
	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

func (s *session) handle(next inbound) (ending, bool) {
	if next.last {
		return endingOf(next.err), true
	}
	if next.err != nil {
		s.socket.send(faultOf(next.err))
		return ending{}, false
	}
	if s.inNoRoom() && !roomless(next.message) {
		s.socket.send(faultOf(errInNoRoom))
		return ending{}, false
	}
	switch m := next.message.(type) {
	case *wire.Offer:
		if !s.offers.Allow() || s.server.meter.offer(*s.spends) != nil {
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
		s.known.mute(m)
		s.shown.Store(s.shows())
		s.say(muteMessage(m.Source, m.Muted))
	case *wire.Rename:
		if err := s.rename(m); err != nil {
			s.socket.send(faultOf(err))
		}
	case *wire.Say:
		s.chat(m)
	case *wire.Watch:
		if err := s.watch(m); err != nil {
			s.socket.send(faultOf(err))
		}
	case *wire.Migrated:
		s.server.hub.arrived(s, s.pin.Boot)
		s.log.Info("client migrated", "how", m.How, "attempt", m.Attempt, "gap_ms", m.GapMs, "lost", m.Lost, "epoch", m.Epoch, "node", s.pin.Node)
	case *wire.Stalled:
		s.server.hub.stalled(s, m.Epoch)
	case *wire.Refresh:
		s.say(refreshMessage(m))
	case *wire.Ping:
		s.socket.send(&wire.Pong{T: m.T})
	case *wire.Leave:
		return ending{code: websocket.StatusNormalClosure, reason: "left", leave: true}, true
	default:
		s.socket.send(faultOf(errOrder))
	}
	return ending{}, false
}

// roomless reports whether a message needs no room.
func roomless(m wire.Message) bool {
	switch m.(type) {
	case *wire.Watch, *wire.Ping, *wire.Leave:
		return true
	default:
		return false
	}
}
