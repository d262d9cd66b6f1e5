package sfu

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/traces"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

const maxIDBytes = 128

// session is an Attach stream that holds a peer.
type session struct {
	room   *room
	peer   *peer
	outbox *outbox

	// unknown says that an unknown message came and was logged. The room's loop owns it.
	unknown bool
}

// handle returns false when the stream ends. Offers are answered here, everything else is done on the room's loop.
func (s *session) handle(ctx context.Context, message *control.PeerMessage) bool {
	if wanted := message.GetOffer(); wanted != nil {
		return s.offer(ctx, message, wanted)
	}
	goesOn := false
	err := s.room.do(ctx, func() {
		if goesOn = s.check(message); goesOn {
			goesOn = s.catchMessage(message)
		}
	})
	return err == nil && goesOn
}

// check ends a stream that lost its peer or has another fence. It runs on the loop.
func (s *session) check(message *control.PeerMessage) bool {
	if s.peer.outbox != s.outbox {
		// The signaling node was told when it lost the peer.
		return false
	}
	refused := s.judge(message)
	if refused == nil {
		return true
	}
	s.outbox.end(refused.event())
	s.room.teller.detach(s.peer)
	return false
}

// judge refuses a message that was not said under the room's present fence.
func (s *session) judge(message *control.PeerMessage) *refusal {
	fence, err := message.GetFence().Value()
	current := s.room.pin().Fence
	switch {
	case err != nil:
		return refuse(control.Refusal_REFUSAL_BAD_REQUEST, "the message has no usable fence: %v", err)
	case fence.Less(current):
		return fenced(current)
	case current.Less(fence):
		// The message brings no pin, so which node the higher fence names is unknown.
		return refuse(control.Refusal_REFUSAL_UNCONFIRMED, "the room is held under %v, not yet under %v: attach with its pin", current, fence)
	}
	return nil
}

// handleNow does what a message says, and returns false if the stream ends by it. It runs on the loop.
func (s *session) handleNow(message *control.PeerMessage) bool {
	r, p := s.room, s.peer
	if r.branch.passOn(p, message) {
		return true
	}
	switch m := message.GetMessage().(type) {
	case *control.PeerMessage_View:
		// A view may name everybody else's camera and screen.
		r.media.SetView(p.id, wantsOf(m.View, 2*r.node.cfg.Limits.PeersPerRoom))
	case *control.PeerMessage_Mute:
		r.acts.mute(p, m.Mute)
	case *control.PeerMessage_Refresh:
		if p.connection != nil {
			p.connection.Show(m.Refresh.GetMids())
		}
		r.media.Refresh(p.id, m.Refresh.GetMids())
	case *control.PeerMessage_Say:
		r.acts.chat(p, m.Say)
	case *control.PeerMessage_Rename:
		r.acts.rename(p, m.Rename.GetName())
	case *control.PeerMessage_Hand:
		r.acts.hand(p, m.Hand.GetRaised())
	case *control.PeerMessage_React:
		r.acts.react(p, m.React.GetEmoji())
	case *control.PeerMessage_Arrived:
		r.people.arrive(p)
	case *control.PeerMessage_Leave:
		r.people.remove(p, "left")
		return false
	case nil:
		// The message is empty, or of a later version.
		s.logUnknown(message)
	case *control.PeerMessage_Attach:
		s.outbox.end(refuse(control.Refusal_REFUSAL_BAD_REQUEST, "the message is a second Attach").event())
		r.teller.detach(p)
		return false
	}
	return true
}

// logUnknown logs the first message of the stream that this node does not know.
func (s *session) logUnknown(message *control.PeerMessage) {
	if !s.unknown {
		s.unknown = true
		s.room.log.Info("messages this node does not know are ignored: the signaling node is newer", "peer", string(s.peer.id),
			"bytes", len(message.ProtoReflect().GetUnknown()))
	}
}

// end leaves the peer in its grace time, unless another stream has the peer by now.
func (s *session) end() {
	s.outbox.end(nil)
	s.room.post(func() {
		if s.peer.outbox == s.outbox {
			s.room.teller.detach(s.peer)
		}
	})
}

// offer works outside the room's loop, one offer of a peer at a time.
func (s *session) offer(ctx context.Context, message *control.PeerMessage, wanted *control.Offer) bool {
	s.peer.negotiation.Lock()
	defer s.peer.negotiation.Unlock()
	var n negotiation
	goesOn := false
	err := s.room.do(ctx, func() {
		if goesOn = s.check(message); goesOn {
			n = negotiation{
				session: s, message: wanted, present: s.peer.connectionOf(wanted.GetPart()),
				canPublish: s.peer.canPublish, publishable: s.peer.sources, canSubscribe: s.peer.canSubscribe,
				strikeName: strikeName(s.peer.entry), path: s.peer.path,
			}
		}
	})
	if err != nil || !goesOn {
		return false
	}
	if sdp, ok := s.peer.answerTo(wanted.GetId()); ok {
		return s.room.do(ctx, func() { s.sendAnswer(wanted.GetId(), sdp) }) == nil
	}
	if n.present == nil {
		// Later offers do not belong to the join or the move that the stream began with.
		n.trace = traces.Of(ctx)
	}
	answering := n.trace.Since("answer offer", time.Now())
	sdp, err := n.catchOffer(ctx)
	if errors.Is(err, offer.ErrBad) {
		// The whole error may quote the offer, and so a client's address.
		answering.End(offer.ErrBad)
	} else {
		answering.End(err)
	}
	if err != nil {
		s.room.log.Info("offer rejected", "peer", string(s.peer.id), "offer", wanted.GetId(), "error", err)
		return s.room.do(ctx, func() {
			s.room.teller.send(s.peer, &control.PeerEvent{Event: &control.PeerEvent_OfferRejected{
				OfferRejected: rejection(wanted.GetId(), err),
			}})
		}) == nil
	}
	s.peer.remember(wanted.GetId(), sdp)
	return s.room.do(ctx, func() {
		s.peer.offers++
		s.sendAnswer(wanted.GetId(), sdp)
	}) == nil
}

// sendAnswer may reach a newer signaling node than the one that asked.
func (s *session) sendAnswer(id, sdp string) {
	s.room.teller.send(s.peer, &control.PeerEvent{Event: &control.PeerEvent_Answer{Answer: &control.Answer{OfferId: id, Sdp: sdp}}})
}

// rejection tells the client its fault in detail, and a fault of the node only in general.
func rejection(id string, err error) *control.OfferRejected {
	if !errors.Is(err, offer.ErrBad) {
		return &control.OfferRejected{
			OfferId: id, NodeFault: true,
			Message: "The media node could not answer the offer. Try again with a new connection.",
		}
	}
	wrong := err.Error()
	return &control.OfferRejected{
		OfferId: id,
		Message: strings.ToUpper(wrong[:1]) + wrong[1:] + ". Make a new connection, or check the offer against the protocol.",
	}
}

// read handles the stream's messages in turn until it ends.
func (s *session) read(stream control.Media_AttachServer) {
	defer s.end()
	whole := !s.room.node.panics.Catch(s.room.log, "a message broke its reading: stream ended", func() {
		for {
			message, err := stream.Recv()
			if err != nil || !s.handle(stream.Context(), message) {
				return
			}
		}
	}, "peer", string(s.peer.id))
	if !whole {
		s.outbox.end(brokeRefusal().event())
	}
}

// catchMessage handles a message, and ends the stream of one that panics. A peer that sends two such messages leaves the room. It runs on
// the loop.
func (s *session) catchMessage(message *control.PeerMessage) (goesOn bool) {
	r, p := s.room, s.peer
	guard := r.node.panics
	if !guard.Catch(r.log, "a message broke the room's handling of it: stream ended", func() { goesOn = s.handleNow(message) },
		"peer", string(p.id), "identity", p.entry.GetIdentity()) {
		return goesOn
	}
	name := strikeName(p.entry)
	guard.Strike(name)
	s.outbox.end(brokeRefusal().event())
	switch {
	case p.gone.Load() || p.outbox != s.outbox:
		// The peer is leaving anyway, or belongs to another stream.
	case guard.Refuses(name):
		r.people.remove(p, "what it sends breaks the room")
	default:
		r.teller.detach(p)
	}
	return false
}

func brokeRefusal() *refusal {
	return refuse(control.Refusal_REFUSAL_BROKE, "the node broke while it handled what this peer sent")
}

// strikeName is the token's subject, which a peer cannot choose.
func strikeName(entry *control.Peer) string { return cmp.Or(entry.GetIdentity(), entry.GetId()) }
