package sfu

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

const maxIDBytes = 128

// session is an Attach stream that holds a peer.
type session struct {
	room   *room
	peer   *peer
	outbox *outbox

	unknown bool // an unknown message came; of the room's loop
}

func (s *session) handle(ctx context.Context, message *control.PeerMessage) bool {
	if wanted := message.GetOffer(); wanted != nil {
		return s.offer(ctx, message, wanted)
	}
	goesOn := false
	err := s.room.do(ctx, func() {
		if goesOn = s.check(message); goesOn {
			goesOn = s.handleOrBreak(message)
		}
	})
	return err == nil && goesOn
}

// check ends a stream that lost its peer or has another fence. It runs on the loop.
func (s *session) check(message *control.PeerMessage) bool {
	if s.peer.outbox != s.outbox {
		return false // the signaling node was told
	}
	refused := s.judge(message)
	if refused == nil {
		return true
	}
	s.outbox.end(refused.event())
	s.room.detach(s.peer)
	return false
}

func (s *session) judge(message *control.PeerMessage) *refusal {
	fence, err := message.GetFence().Value()
	current := s.room.pin().Fence
	switch {
	case err != nil:
		return refuse(control.Refusal_REFUSAL_BAD_REQUEST, "the message has no usable fence: %v", err)
	case fence.Less(current):
		return fenced(current)
	case current.Less(fence):
		// Without a pin, where that fence points is unknown.
		return refuse(control.Refusal_REFUSAL_UNCONFIRMED, "the room is held under %v, not yet under %v: attach with its pin", current, fence)
	}
	return nil
}

// handleNow runs on the loop.
func (s *session) handleNow(message *control.PeerMessage) bool {
	r, p := s.room, s.peer
	switch m := message.GetMessage().(type) {
	case *control.PeerMessage_View:
		// everybody else's camera and screen
		r.media.SetView(p.id, wantsOf(m.View, 2*r.node.cfg.Limits.PeersPerRoom))
	case *control.PeerMessage_Mute:
		r.mute(p, m.Mute)
	case *control.PeerMessage_Refresh:
		r.media.Refresh(p.id, m.Refresh.GetMids())
	case *control.PeerMessage_Say:
		r.chat(p, m.Say)
	case *control.PeerMessage_Rename:
		r.rename(p, m.Rename.GetName())
	case *control.PeerMessage_Hand:
		r.hand(p, m.Hand.GetRaised())
	case *control.PeerMessage_React:
		r.react(p, m.React.GetEmoji())
	case *control.PeerMessage_Arrived:
		r.arrive(p)
	case *control.PeerMessage_Leave:
		r.remove(p, "left")
		return false
	case nil: // empty, or of a later version
		s.logUnknown(message)
	case *control.PeerMessage_Attach:
		s.outbox.end(refuse(control.Refusal_REFUSAL_BAD_REQUEST, "the message is a second Attach").event())
		r.detach(p)
		return false
	}
	return true
}

func (s *session) logUnknown(message *control.PeerMessage) {
	if !s.unknown {
		s.unknown = true
		s.room.log.Info("messages this node does not know are ignored: the signaling node is newer", "peer", string(s.peer.id),
			"bytes", len(message.ProtoReflect().GetUnknown()))
	}
}

func (s *session) end() {
	s.outbox.end(nil)
	s.room.post(func() {
		if s.peer.outbox == s.outbox {
			s.room.detach(s.peer)
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
				session: s, message: wanted, present: s.peer.connection,
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
	sdp, err := n.survive(ctx)
	if err != nil {
		s.room.log.Info("offer rejected", "peer", string(s.peer.id), "offer", wanted.GetId(), "error", err)
		return s.room.do(ctx, func() {
			s.room.send(s.peer, &control.PeerEvent{Event: &control.PeerEvent_OfferRejected{
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
	s.room.send(s.peer, &control.PeerEvent{Event: &control.PeerEvent_Answer{Answer: &control.Answer{OfferId: id, Sdp: sdp}}})
}

// rejection names the client's fault; ours only in general.
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

// negotiation answers one offer.
type negotiation struct {
	session      *session
	message      *control.Offer
	present      *connection // when it began
	canPublish   bool
	publishable  uint32
	canSubscribe bool
	strikeName   string
	path         uint64
}

var (
	errBroken     = errors.New("the offer broke the node's answering")
	errBrokenPeer = errors.New("what this peer sent has broken the node's handling of it twice")
)

// survive gives up the offer's connection when answering panics. It needs the peer's negotiation.
func (n *negotiation) survive(ctx context.Context) (sdp string, err error) {
	node := n.session.room.node
	if node.panics.Refuses(n.strikeName) {
		return "", errBrokenPeer
	}
	answering := node.answering
	select {
	case answering <- struct{}{}:
		defer func() { <-answering }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() {
		if caught := panics.Of(recover()); caught != nil {
			node.panics.Report(n.session.room.log, caught, "an offer broke the node's answering of it", "peer", string(n.session.peer.id))
			node.panics.Strike(n.strikeName)
			if n.present != nil {
				n.present.giveUp()
			}
			err = errBroken
		}
	}()
	return n.run(ctx)
}

// run uses the peer's connection if the offer is of the same RTCPeerConnection, else a new one.
func (n *negotiation) run(ctx context.Context) (string, error) {
	limits := n.session.room.node.cfg.Limits
	if id := n.message.GetId(); id == "" || len(id) > maxIDBytes {
		return "", fmt.Errorf("%w: its id has %d bytes, want 1 to %d", offer.ErrBad, len(id), maxIDBytes)
	}
	o, err := offer.Read(n.message.GetSdp(), offerLimits(limits))
	if err != nil {
		return "", err
	}
	if n.present != nil && !n.message.GetFresh() && n.present.accepts(o) {
		return n.present.answer(n.message, o)
	}
	return n.replace(ctx, o)
}

func (n *negotiation) replace(ctx context.Context, o *offer.Offer) (string, error) {
	r, p := n.session.room, n.session.peer
	if err := n.setTable(ctx); err != nil {
		return "", err
	}
	fresh, err := n.connect(o)
	if err != nil {
		return "", err
	}
	sdp, err := fresh.answer(n.message, o)
	if err != nil {
		fresh.close()
		return "", err
	}
	installed := false
	err = r.do(ctx, func() {
		if p.gone.Load() {
			return
		}
		if old := p.connection; old != nil {
			r.node.closeSoon(func() {
				old.retire(fresh)
				old.close()
			})
		}
		fresh.uplink.silence(p.entry.GetSilenced())
		p.connection, p.connected, installed = fresh, false, true
		r.count()
	})
	if err == nil && installed {
		return sdp, nil
	}
	fresh.close()
	return "", errConnectionClosed
}

// setTable has slots show the same as at the node that the peer comes from.
func (n *negotiation) setTable(ctx context.Context) error {
	r, p := n.session.room, n.session.peer
	table := tableOf(n.message.GetSlots(), r.node.cfg.Limits.SlotsPerPeer)
	if n.present != nil || len(table) == 0 {
		return nil
	}
	return r.do(ctx, func() { // the loop, so that it does not come after RemovePeer
		if !p.gone.Load() {
			r.media.SetTable(p.id, table)
		}
	})
}

func (n *negotiation) connect(o *offer.Offer) (*connection, error) {
	r, p := n.session.room, n.session.peer
	told, err := r.node.candidates()
	if err != nil {
		return nil, err
	}
	shard := int(r.turn.Add(1)-1) / shardPeers % len(r.parts)
	path, who := n.path, n.strikeName
	if n.present != nil {
		path = n.present.path.Target()
	}
	return connect(r.node.transport, o, connectionConfig{
		room: r.media, batch: r.parts[shard], shard: shard, owner: string(r.id) + "\n" + string(p.id), peer: p.id, gone: p.gone.Load, canPublish: n.canPublish, publishable: n.publishable, canSubscribe: n.canSubscribe,
		compatible: n.present != nil && n.present.needsCompatible(), candidates: told, mediaTCP: r.node.MediaTCP(),
		pathStart: path, onPath: func() { r.news.path(p.id) },
		log:      r.log.With("peer", string(p.id)),
		onBroken: func() { r.node.panics.Strike(who) },
		onState: func(c *connection, state control.TransportState) {
			r.post(func() { r.transportChanged(p, c, state) })
		},
	})
}

// transportChanged ignores replaced connections.
func (r *room) transportChanged(p *peer, c *connection, state control.TransportState) {
	if p.gone.Load() || p.connection != c {
		return
	}
	p.connected = state == control.TransportState_TRANSPORT_STATE_CONNECTED
	r.count()
	r.log.Debug("peer transport changed", "peer", string(p.id), "state", state.String())
	r.send(p, &control.PeerEvent{Event: &control.PeerEvent_Transport{Transport: &control.Transport{State: state}}})
}
