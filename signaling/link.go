package signaling

import (
	"cmp"
	"context"
	"errors"
	"fmt"

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
		Pin: p, Room: s.who.Room, Signaling: s.server.config.Node, KnowsPlaces: s.knowsPlaces, ServedBy: s.place.Boot,
		Peer: &control.Peer{
			Id: s.who.Peer, Identity: s.who.Identity, Name: s.who.Name, Metadata: s.who.Metadata, Attributes: s.who.Attributes,
			AudioMuted:   s.known.muted[wire.SourceMicrophone] || !mayPublish(s.who, wire.SourceMicrophone),
			VideoMuted:   s.known.muted[wire.SourceCamera] || !mayPublish(s.who, wire.SourceCamera),
			ScreenShared: s.known.shares(wire.SourceScreen), ScreenAudio: s.known.shares(wire.SourceScreenAudio),
			Hidden: s.who.Hidden, Moderator: s.who.CanModerate, GrantJudgedUnixMs: s.known.ownEntry(s.who.Peer).GetGrantJudgedUnixMs(),
			HandRaisedUnixMs: s.known.ownEntry(s.who.Peer).GetHandRaisedUnixMs(), Silenced: s.known.stillSilenced(s.who.Peer),
			Unlisted: s.known.audience.own != nil,
		},
		CanPublish: s.who.CanPublish, Sources: uint32(s.who.Sources), CanSubscribe: s.who.CanSubscribe,
		CanChat: s.who.CanChat, CanRename: s.who.CanRename, Settings: s.line.settings,
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

const (
	// mostHops is how often one attach is sent on from node to node.
	mostHops = 3
	// branchTries is how often a branch may fail one attach before the session pauses.
	branchTries = 3
)

// errNoPlace hides what a branch said: its headroom, or its draining, does not move the room.
var errNoPlace = fmt.Errorf("%w: the room's owner names a node that does not take this person", sfulink.ErrUnreachable)

// errBranchGone: the owner has not noticed yet, as of a frozen node. An attempt there would wait for all of its patience.
var errBranchGone = fmt.Errorf("%w: the branch of the room has died", sfulink.ErrUnreachable)

// attach attaches at the room's owner, and where the owner sends the peer. first is asked before the owner, unless it is zero. If a branch
// fails, the owner is asked again: it may name another place.
func (s *session) attach(ctx context.Context, o *sfulink.Opening, first sfulink.Place) (*sfulink.Link, error) {
	at, hops, failures := cmp.Or(first, sfulink.Owner(o.Pin)), 0, 0
	o.Generation = s.generation.next()
	for {
		link, err := s.attachAt(ctx, o, at)
		if err == nil {
			return link, nil
		}
		var refused *sfulink.RefusedError
		sent := errors.As(err, &refused) && refused.Code == control.Refusal_REFUSAL_ELSEWHERE
		switch {
		case sent && refused.Elsewhere != (sfulink.Place{}) && hops < mostHops:
			at, hops = refused.Elsewhere, hops+1
		case sent && at.Boot == o.Pin.Boot:
			return nil, fmt.Errorf("%w: %s", errNoPlace, err.Error())
		case at.Boot == o.Pin.Boot, ctx.Err() != nil, errors.Is(err, errUnheard), errors.Is(err, errBranchGone), refused != nil && countsAtBranch(refused.Code):
			return nil, err
		default:
			s.log.Debug("not attached to a branch of the room", "node", at.Node, "error", err)
			if failures++; failures == branchTries {
				return nil, fmt.Errorf("%w: %s", errNoPlace, err.Error())
			}
			// The branch may have told the owner of this generation.
			at, hops, o.Generation = sfulink.Owner(o.Pin), 0, s.generation.next()
		}
	}
}

// countsAtBranch: the owner would say the same. Any other refusal is the branch's own.
func countsAtBranch(refusal control.Refusal) bool {
	switch refusal {
	case control.Refusal_REFUSAL_FENCED, control.Refusal_REFUSAL_STALE_GENERATION, control.Refusal_REFUSAL_BAD_REQUEST,
		control.Refusal_REFUSAL_REMOVED, control.Refusal_REFUSAL_BROKE:
		return true
	default:
		return false
	}
}

func (s *session) attachAt(ctx context.Context, o *sfulink.Opening, at sfulink.Place) (link *sfulink.Link, err error) {
	ctx, span := traces.Call(ctx, "attach")
	defer func() { span.Set("room", string(o.Room)).Set("node", string(at.Node)).End(err) }()
	branch := at.Boot != o.Pin.Boot
	switch {
	case branch && s.server.reach.refuses(at.Boot):
		return nil, errUnheard
	case branch && s.server.parts.Views.View().Gone[at.Boot] != "":
		return nil, errBranchGone
	}
	client, err := s.server.parts.Pool.Client(at.Control)
	if err != nil {
		return nil, errors.Join(sfulink.ErrUnreachable, err)
	}
	there := *o
	there.At = at
	link, err = sfulink.Open(ctx, client, there, s.server.config.AttachPatience)
	if err != nil {
		return nil, err
	}
	// A branch reports people of a room that it did not open.
	if charged := link.Attached.GetChargedInReport(); charged > 0 && !branch {
		s.server.parts.Placer.Opened(o.Room, at.Node, charged)
	}
	return link, nil
}

// takePlace follows a link to the place that it leads to.
func (s *session) takePlace() {
	s.place, s.told = s.link.Place, s.link.Pin.Fence.Epoch
	branch := pin.BootID("")
	if s.onBranch() {
		branch = s.place.Boot
	}
	s.server.hub.Branch(&s.seat, branch)
	s.noteStandby(s.link.Attached.GetStandby())
}

func (s *session) noteStandby(told *control.RoomStandby) {
	s.server.hub.Standby(&s.seat, pin.BootID(told.GetBoot()), told.GetAll())
}

// onBranch reports whether the client's media is at a branch of the room.
func (s *session) onBranch() bool { return s.link != nil && s.link.Place.Boot != s.link.Pin.Boot }

// reach attaches until it succeeds, is refused for good, or the room moved. first is as in attach. Failover decides whether a silent node is dead.
func (s *session) reach(ctx context.Context, first sfulink.Place) {
	s.drop()
	ctx, s.drop = context.WithCancel(ctx)
	opening, who := s.opening(s.pin), s.who // a rename changes the session's own
	s.work(func() {
		r, told := reached{number: opening}, false
		for tries := 0; ; tries++ {
			r.link, r.err = s.attach(ctx, opening, first)
			if r.err == nil {
				break
			}
			first = sfulink.Place{}
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
		s.log.Debug("not said", "node", s.place.Node, "error", err)
	}
}

// linkEnded tries the same pin until the hub says that the room moved. A branch is forgotten: the owner names the next place.
func (s *session) linkEnded(ctx context.Context) (ending, bool) {
	err := s.link.Err()
	if caught, broken := errors.AsType[*panics.Error](err); broken {
		s.report(caught, "what a media node sent broke its reading: link ended")
	}
	if !s.onBranch() {
		s.server.hub.Introduce(s.who.Room, pin.Pin{}) // the node may have forgotten the room
	}
	s.link.Close()
	s.link, s.cameLive = nil, false
	s.log.Debug("link ended", "error", err)
	s.reach(ctx, sfulink.Place{})
	return ending{}, false
}

// branchDied ends the link to a branch that failover, not the link itself, found to be dead.
func (s *session) branchDied(boot pin.BootID) {
	if s.onBranch() && s.link.Place.Boot == boot {
		s.link.Close()
	}
}

// sentElsewhere follows a node that gives the peer's place up, to another node under the same pin.
func (s *session) sentElsewhere(ctx context.Context, m *control.Elsewhere) {
	to := sfulink.PlaceOf(m.GetPlace())
	s.log.Debug("sent elsewhere", "from", s.place.Node, "to", to.Node, "live", m.GetLive())
	if m.GetLive() {
		s.keepFormer()
	}
	s.dropLink()
	s.cameLive = m.GetLive()
	s.reach(ctx, to)
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
		s.offerRejected(e.OfferRejected)
	case *control.PeerEvent_Slots:
		s.known.slots, s.known.lacks = e.Slots.GetSlots(), e.Slots.GetLacks()
		s.socket.send(&wire.Slots{Slots: translate.Slots(s.known.slots), Lacks: translate.Lacks(s.known.lacks), Epoch: epoch})
	case *control.PeerEvent_Roster:
		s.rosterReplaced(e.Roster.GetPeers(), event.GetSeq())
	case *control.PeerEvent_RosterChange:
		s.rosterChangedByOne(e.RosterChange, event.GetSeq())
	case *control.PeerEvent_RosterChanges:
		s.rosterChanged(e.RosterChanges, event.GetSeq())
	case *control.PeerEvent_Audience:
		s.setAudience(e.Audience.GetPeople())
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
		s.log.Info("node asks for a new offer", "reason", e.Reoffer.GetReason(), "mids", e.Reoffer.GetMids(), "node", s.place.Node)
		s.socket.send(&wire.Reoffer{Mids: e.Reoffer.GetMids(), Reason: e.Reoffer.GetReason(), Epoch: epoch})
	case *control.PeerEvent_Rests:
		s.socket.send(translate.Rests(e.Rests, epoch))
	case *control.PeerEvent_Egress:
		s.setEgress(e.Egress)
	case *control.PeerEvent_Limited:
		s.setLimited(e.Limited.GetLimited())
	case *control.PeerEvent_Standby:
		s.noteStandby(e.Standby)
	case *control.PeerEvent_RoomState:
		s.roomChanged(e.RoomState)
	case *control.PeerEvent_Granted:
		s.granted(e.Granted)
	case *control.PeerEvent_Path:
		s.known.path = e.Path.GetBitsPerSecond()
	case *control.PeerEvent_Fenced:
		s.handedOver(ctx, e.Fenced)
	case *control.PeerEvent_Elsewhere:
		s.sentElsewhere(ctx, e.Elsewhere)
	case *control.PeerEvent_Settled:
		s.server.hub.Settle(s.who.Room, s.pin.Fence)
		s.socket.send(&wire.Settled{Epoch: epoch})
	case *control.PeerEvent_Refused:
		return s.refusedLater(ctx, e.Refused)
	case *control.PeerEvent_Closed:
		s.log.Info("node closed the session", "reason", e.Closed.GetReason(), "node", s.place.Node)
	default:
		s.note(event)
	}
	return ending{}, false
}

// note takes what the client itself is not told.
func (s *session) note(event *control.PeerEvent) {
	switch e := event.GetEvent().(type) {
	case *control.PeerEvent_Senders:
		if s.socket.livekit != nil {
			s.socket.livekit.Sends(translate.Senders(e.Senders.GetSenders()))
		}
	case *control.PeerEvent_Transport:
		s.log.Debug("media transport", "state", e.Transport.GetState(), "node", s.place.Node)
	default:
		s.log.Debug("node said something unknown", "node", s.place.Node)
	}
}

func (s *session) offerRejected(r *control.OfferRejected) {
	s.known.answered(r.GetOfferId())
	code := wire.CodeBadOffer
	if r.GetNodeFault() {
		code = wire.CodeInternal
	}
	s.socket.send(&wire.OfferRejected{ID: r.GetOfferId(), Code: code, Message: r.GetMessage(), Epoch: s.pin.Fence.Epoch})
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
		s.log.Warn("a message of this client broke its media node", "node", s.place.Node)
	default:
		s.log.Info("node refused", "code", r.GetCode(), "message", r.GetMessage(), "node", s.place.Node)
	}
	return ending{}, false
}
