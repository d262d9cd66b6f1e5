package signaling

import (
	"context"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// tellOrSkip skips an event that panics.
func (s *session) tellOrSkip(ctx context.Context, event *control.PeerEvent) (how ending, done bool) {
	if caught := panics.Catch(func() { how, done = s.tell(ctx, event) }); caught != nil {
		s.report(caught, "an event of the media node broke its handling: left out")
		return ending{}, false
	}
	return how, done
}

func (s *session) tell(ctx context.Context, event *control.PeerEvent) (ending, bool) {
	epoch := s.pin.Fence.Epoch
	switch e := event.GetEvent().(type) {
	case *control.PeerEvent_Answer:
		s.answered(e.Answer.GetOfferId())
		s.socket.send(&wire.Answer{ID: e.Answer.GetOfferId(), SDP: e.Answer.GetSdp(), Placement: s.placement()})
	case *control.PeerEvent_OfferRejected:
		s.answered(e.OfferRejected.GetOfferId())
		code := wire.CodeBadOffer
		if e.OfferRejected.GetNodeFault() {
			code = wire.CodeInternal
		}
		s.socket.send(&wire.OfferRejected{ID: e.OfferRejected.GetOfferId(), Code: code, Message: e.OfferRejected.GetMessage(), Epoch: epoch})
	case *control.PeerEvent_Slots:
		s.known.slots = e.Slots.GetSlots()
		s.socket.send(&wire.Slots{Slots: wireSlots(s.known.slots), Lacks: wireLacks(e.Slots.GetLacks()), Epoch: epoch})
	case *control.PeerEvent_Roster:
		before := s.own().GetModerator()
		s.setRoster(e.Roster.GetPeers())
		s.socket.send(&wire.Roster{Roster: wireRoster(s.known.roster), Epoch: epoch, Seq: event.GetSeq()})
		s.followGrant(before)
	case *control.PeerEvent_RosterChange:
		before := s.own().GetModerator()
		s.known.change(e.RosterChange)
		s.setRoster(s.known.roster)
		s.socket.send(rosterChange(e.RosterChange, epoch, event.GetSeq()))
		s.followGrant(before)
	case *control.PeerEvent_Silenced:
		s.silenced(wireSource(e.Silenced.GetSource()), e.Silenced.GetBy())
	case *control.PeerEvent_UnmuteAsked:
		s.socket.send(&wire.UnmuteAsked{Source: wireSource(e.UnmuteAsked.GetSource()), By: e.UnmuteAsked.GetBy(), Epoch: epoch})
	case *control.PeerEvent_Reactions:
		s.socket.send(&wire.Reactions{Reactions: wireReactions(e.Reactions.GetReactions()), Epoch: epoch})
	case *control.PeerEvent_Speakers:
		s.socket.send(&wire.Speakers{Speakers: wireSpeakers(e.Speakers.GetSpeakers()), Epoch: epoch})
	case *control.PeerEvent_Chat:
		s.socket.send(wireChat(e.Chat, epoch))
	case *control.PeerEvent_Reoffer:
		s.log.Info("node asks for a new offer", "reason", e.Reoffer.GetReason(), "mids", e.Reoffer.GetMids(), "node", s.pin.Node)
		s.socket.send(&wire.Reoffer{Mids: e.Reoffer.GetMids(), Reason: e.Reoffer.GetReason(), Epoch: epoch})
	case *control.PeerEvent_Egress:
		s.setEgress(e.Egress)
	case *control.PeerEvent_Limited:
		s.setLimited(e.Limited.GetLimited())
	case *control.PeerEvent_Path:
		s.known.path = e.Path.GetBitsPerSecond()
	case *control.PeerEvent_Transport:
		s.log.Debug("media transport", "state", e.Transport.GetState(), "node", s.pin.Node)
	case *control.PeerEvent_Fenced:
		s.handedOver(ctx, e.Fenced)
	case *control.PeerEvent_Settled:
		s.server.hub.settle(s.who.Room, s.pin.Fence)
		s.socket.send(&wire.Settled{Epoch: epoch})
	case *control.PeerEvent_Refused:
		return s.refusedLater(ctx, e.Refused)
	case *control.PeerEvent_Closed:
		s.log.Info("node closed the session", "reason", e.Closed.GetReason(), "node", s.pin.Node)
	default:
		s.log.Debug("node said something unknown", "node", s.pin.Node)
	}
	return ending{}, false
}

func (s *session) refusedLater(ctx context.Context, r *control.Refused) (ending, bool) {
	switch r.GetCode() {
	case control.Refusal_REFUSAL_STALE_GENERATION, control.Refusal_REFUSAL_REMOVED:
		return s.bye(&sfulink.RefusedError{Code: r.GetCode()})
	case control.Refusal_REFUSAL_FENCED:
		s.fenced(ctx, r.GetCurrent())
	case control.Refusal_REFUSAL_BROKE: // a second time the next attach is refused
		s.log.Warn("a message of this client broke its media node", "node", s.pin.Node)
	default:
		s.log.Info("node refused", "code", r.GetCode(), "message", r.GetMessage(), "node", s.pin.Node)
	}
	return ending{}, false
}

func (s *session) answered(id string) {
	if s.known.unanswered != nil && s.known.unanswered.ID == id {
		s.known.unanswered = nil
	}
}

func rosterChange(c *control.RosterChange, epoch, seq uint64) wire.Message {
	switch {
	case c.GetJoined() != nil:
		return &wire.PeerJoined{Peer: wirePeer(c.GetJoined()), Epoch: epoch, Seq: seq}
	case c.GetUpdated() != nil:
		return &wire.PeerUpdated{Peer: wirePeer(c.GetUpdated()), Epoch: epoch, Seq: seq}
	default:
		return &wire.PeerLeft{Peer: wire.PeerID(c.GetLeft()), Epoch: epoch, Seq: seq}
	}
}
