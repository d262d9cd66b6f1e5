package signaling

import (
	"context"
	"errors"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/traces"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/reply"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
	"github.com/holdfast-rtc/holdfast/signaling/translate"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// The hub hears of a death sooner than the store, so a session retries its node first.
const patientTries = 3

type reached struct {
	number *sfulink.Opening // older attempts do not count
	link   *sfulink.Link
	err    error // final
}

// errElsewhere: the hub has a higher pin and tells this session.
var errElsewhere = errors.New("the room is elsewhere")

func (s *session) opening(p pin.Pin) *sfulink.Opening {
	s.seat.shown.Store(s.known.shows(s.who))
	o := &sfulink.Opening{
		Pin: p, Room: s.who.Room, Signaling: s.server.config.Node,
		Peer: &control.Peer{
			Id: s.who.Peer, Identity: s.who.Identity, Name: s.who.Name, Metadata: s.who.Metadata, Attributes: s.who.Attributes,
			AudioMuted:   s.known.muted[wire.SourceMicrophone] || !mayPublish(s.who, wire.SourceMicrophone),
			VideoMuted:   s.known.muted[wire.SourceCamera] || !mayPublish(s.who, wire.SourceCamera),
			ScreenShared: s.known.shares(wire.SourceScreen), ScreenAudio: s.known.shares(wire.SourceScreenAudio),
			Hidden: s.who.Hidden, Moderator: s.who.CanModerate, GrantJudgedUnixMs: s.known.roster.Peer(s.who.Peer).GetGrantJudgedUnixMs(),
			HandRaisedUnixMs: s.known.roster.Peer(s.who.Peer).GetHandRaisedUnixMs(), Silenced: s.known.stillSilenced(s.who.Peer),
		},
		CanPublish: s.who.CanPublish, Sources: uint32(s.who.Sources), CanSubscribe: s.who.CanSubscribe,
		Expect: s.expect(), Path: s.known.path,
	}
	if o.Known = s.known.roster.Digest(); o.Known == 0 {
		return o
	}
	if !s.server.hub.Introduced(s.who.Room, p) {
		o.Expected = s.known.expected()
	}
	return o
}

func (s *session) attach(ctx context.Context, o *sfulink.Opening) (link *sfulink.Link, err error) {
	ctx, span := traces.Call(ctx, "attach")
	defer func() { span.Set("room", string(o.Room)).Set("node", string(o.Pin.Node)).End(err) }()
	client, err := s.server.parts.Pool.Client(o.Pin.Control)
	if err != nil {
		return nil, errors.Join(sfulink.ErrUnreachable, err)
	}
	o.Generation = s.generation.next()
	link, err = sfulink.Open(ctx, client, *o, s.server.config.AttachPatience)
	if err != nil {
		return nil, err
	}
	if charged := link.Attached.GetChargedInReport(); charged > 0 {
		s.server.parts.Placer.Opened(o.Room, o.Pin.Node, charged)
	}
	return link, nil
}

// reach attaches until it succeeds, is refused for good, or the room moved. Failover decides whether a silent node is dead.
func (s *session) reach(ctx context.Context) {
	s.drop()
	ctx, s.drop = context.WithCancel(ctx)
	opening, who := s.opening(s.pin), s.who // a rename changes the session's own
	s.work(func() {
		r, told := reached{number: opening}, false
		for tries := 0; ; tries++ {
			r.link, r.err = s.attach(ctx, opening)
			if r.err == nil {
				break
			}
			s.log.Debug("not attached", "node", opening.Pin.Node, "tries", tries+1, "error", r.err)
			if final(r.err) {
				break
			}
			why := s.lookAgain(ctx, who, opening.Pin, opening.Expect, r.err, tries)
			if lacksHeadroom(why) && !told {
				told = true
				s.socket.send(reply.Of(why))
			}
			if errors.Is(why, errElsewhere) || !s.server.config.pause(ctx, tries) {
				break
			}
		}
		select {
		case s.reached <- r:
		case <-ctx.Done():
			if r.link != nil {
				r.link.Close()
			}
		}
	})
	s.expected = opening
}

// lookAgain asks where the room is if it may have moved. errElsewhere: the hub has its new pin.
func (s *session) lookAgain(ctx context.Context, who access.Session, at pin.Pin, expect headroom.Room, failure error, tries int) error {
	if errors.Is(failure, sfulink.ErrUnreachable) && tries < patientTries {
		return nil
	}
	next, err := s.placeAfter(ctx, who, at, expect, failure)
	if err != nil {
		s.log.Debug("room not placed again", "error", err)
		return err
	}
	if at.Fence.Less(next.Fence) {
		s.log.Debug("room found elsewhere", "to", next.Node, "epoch", next.Fence.Epoch, "reason", failure)
		s.server.hub.Found(s.who.Room, next, refusedUnder(at, failure))
		return errElsewhere
	}
	return nil
}

// refusedUnder is zero unless the node would not open the room.
func refusedUnder(at pin.Pin, failure error) pin.Fence {
	if refused, ok := errors.AsType[*sfulink.RefusedError](failure); ok && refusesRoom(refused) {
		return at.Fence
	}
	return pin.Fence{}
}

func refusesRoom(refused *sfulink.RefusedError) bool {
	return refused.Code == control.Refusal_REFUSAL_NO_HEADROOM || refused.Code == control.Refusal_REFUSAL_DRAINING
}

// A refused room has the size that its node judged.
func (s *session) placeAfter(ctx context.Context, who access.Session, p pin.Pin, expect headroom.Room, failure error) (pin.Pin, error) {
	if refused, ok := errors.AsType[*sfulink.RefusedError](failure); ok {
		switch {
		case refusesRoom(refused):
			return s.server.hub.PlaceAgain(ctx, s.who.Room, p, expect)
		case refused.Code == control.Refusal_REFUSAL_UNCONFIRMED:
			return p, nil
		case refused.Code == control.Refusal_REFUSAL_NOT_HERE:
			return s.line.pass(ctx, who, expect, 0) // only the door can let this person in
		}
		if !refused.Current.IsZero() {
			s.server.parts.Placer.Observe(s.who.Room, refused.Current)
		}
	}
	return throughDoor(s.server.hub.Place(ctx, s.who.Room, expect))
}

// final: retrying does not help.
func final(err error) bool {
	refused, ok := errors.AsType[*sfulink.RefusedError](err)
	if !ok {
		return false
	}
	switch refused.Code {
	case control.Refusal_REFUSAL_ROOM_FULL, control.Refusal_REFUSAL_STALE_GENERATION, control.Refusal_REFUSAL_BAD_REQUEST,
		control.Refusal_REFUSAL_REMOVED, control.Refusal_REFUSAL_BROKE:
		return true
	default:
		return false
	}
}

// repeat makes up for what say loses.
func (s *session) say(m *control.PeerMessage) {
	if s.link == nil {
		return
	}
	if err := s.link.Send(m); err != nil {
		s.log.Debug("not said", "node", s.pin.Node, "error", err)
	}
}

// linkEnded tries the same pin until the hub says that the room moved.
func (s *session) linkEnded(ctx context.Context) (ending, bool) {
	err := s.link.Err()
	if caught, broken := errors.AsType[*panics.Error](err); broken {
		s.report(caught, "what a media node sent broke its reading: link ended")
	}
	s.link.Close()
	s.link = nil
	s.server.hub.Introduce(s.who.Room, pin.Pin{}) // the node may have forgotten the room
	s.log.Debug("link ended", "error", err)
	s.reach(ctx)
	return ending{}, false
}

func (s *session) dropLink() {
	s.drop()
	if s.link != nil {
		s.link.Close()
		s.link = nil
	}
}

func (s *session) fenced(ctx context.Context, current *control.Fence) {
	refused := &sfulink.RefusedError{Code: control.Refusal_REFUSAL_FENCED, Message: "fenced"}
	if f, err := current.Value(); err == nil {
		refused.Current = f
	}
	at, expect, who := s.pin, s.expect(), s.who
	s.work(func() {
		_ = s.lookAgain(ctx, who, at, expect, refused, 0)
	})
}

// catchEvent tells the client of a media node's event, and leaves out an event that breaks its handling.
func (s *session) catchEvent(ctx context.Context, event *control.PeerEvent) (how ending, done bool) {
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
		s.known.answered(e.Answer.GetOfferId())
		s.socket.send(&wire.Answer{ID: e.Answer.GetOfferId(), SDP: e.Answer.GetSdp(), Placement: s.placement()})
	case *control.PeerEvent_OfferRejected:
		s.known.answered(e.OfferRejected.GetOfferId())
		code := wire.CodeBadOffer
		if e.OfferRejected.GetNodeFault() {
			code = wire.CodeInternal
		}
		s.socket.send(&wire.OfferRejected{ID: e.OfferRejected.GetOfferId(), Code: code, Message: e.OfferRejected.GetMessage(), Epoch: epoch})
	case *control.PeerEvent_Slots:
		s.known.slots = e.Slots.GetSlots()
		s.socket.send(&wire.Slots{Slots: translate.Slots(s.known.slots), Lacks: translate.Lacks(e.Slots.GetLacks()), Epoch: epoch})
	case *control.PeerEvent_Roster:
		s.rosterReplaced(e.Roster.GetPeers(), event.GetSeq())
	case *control.PeerEvent_RosterChange:
		s.rosterChangedByOne(e.RosterChange, event.GetSeq())
	case *control.PeerEvent_RosterChanges:
		s.rosterChanged(e.RosterChanges, event.GetSeq())
	case *control.PeerEvent_Silenced:
		s.silenced(translate.Source(e.Silenced.GetSource()), e.Silenced.GetBy())
	case *control.PeerEvent_UnmuteAsked:
		s.socket.send(&wire.UnmuteAsked{Source: translate.Source(e.UnmuteAsked.GetSource()), By: e.UnmuteAsked.GetBy(), Epoch: epoch})
	case *control.PeerEvent_Reactions:
		s.socket.send(&wire.Reactions{Reactions: translate.Reactions(e.Reactions.GetReactions()), Epoch: epoch})
	case *control.PeerEvent_Speakers:
		s.socket.send(&wire.Speakers{Speakers: translate.Speakers(e.Speakers.GetSpeakers()), Epoch: epoch})
	case *control.PeerEvent_Chat:
		s.socket.send(translate.Chat(e.Chat, epoch))
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
		s.server.hub.Settle(s.who.Room, s.pin.Fence)
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
		how, done := s.bye(&sfulink.RefusedError{Code: r.GetCode(), Ended: r.GetEnded()})
		how.removed = r.GetCode() == control.Refusal_REFUSAL_REMOVED
		return how, done
	case control.Refusal_REFUSAL_FENCED:
		s.fenced(ctx, r.GetCurrent())
	case control.Refusal_REFUSAL_BROKE: // a second time the next attach is refused
		s.log.Warn("a message of this client broke its media node", "node", s.pin.Node)
	default:
		s.log.Info("node refused", "code", r.GetCode(), "message", r.GetMessage(), "node", s.pin.Node)
	}
	return ending{}, false
}
