package signaling

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
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
	s.shown.Store(s.shows())
	o := &sfulink.Opening{
		Pin: p, Room: s.who.Room,
		Peer: &control.Peer{
			Id: s.who.Peer, Identity: s.who.Identity, Name: s.who.Name,
			AudioMuted:   s.known.muted[wire.SourceMicrophone] || !mayPublish(s.who, wire.SourceMicrophone),
			VideoMuted:   s.known.muted[wire.SourceCamera] || !mayPublish(s.who, wire.SourceCamera),
			ScreenShared: s.known.shares(wire.SourceScreen), ScreenAudio: s.known.shares(wire.SourceScreenAudio),
			Hidden: s.who.Hidden, Moderator: s.who.CanModerate, GrantJudgedUnixMs: s.own().GetGrantJudgedUnixMs(),
			HandRaisedUnixMs: s.own().GetHandRaisedUnixMs(), Silenced: s.stillSilenced(),
		},
		CanPublish: s.who.CanPublish, Sources: uint32(s.who.Sources), CanSubscribe: s.who.CanSubscribe,
		Expect: s.expect(), Path: s.known.path,
	}
	if len(s.known.roster) == 0 {
		return o
	}
	o.Known = control.RosterDigest(s.known.roster)
	if !s.server.hub.introduced(s.who.Room, p) {
		o.Expected = s.known.expected()
	}
	return o
}

func (s *session) attach(ctx context.Context, o *sfulink.Opening) (*sfulink.Link, error) {
	client, err := s.server.parts.Pool.Client(o.Pin.Control)
	if err != nil {
		return nil, errors.Join(sfulink.ErrUnreachable, err)
	}
	o.Generation = s.generation.next()
	link, err := sfulink.Open(ctx, client, *o, s.server.config.AttachPatience)
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
	opening := s.opening(s.pin)
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
			why := s.lookAgain(ctx, opening.Pin, opening.Expect, r.err, tries)
			if lacksHeadroom(why) && !told {
				told = true
				s.socket.send(faultOf(why))
			}
			if errors.Is(why, errElsewhere) || !s.pause(ctx, tries) {
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
func (s *session) lookAgain(ctx context.Context, at pin.Pin, expect headroom.Room, failure error, tries int) error {
	if errors.Is(failure, sfulink.ErrUnreachable) && tries < patientTries {
		return nil
	}
	next, err := s.placeAfter(ctx, at, expect, failure)
	if err != nil {
		s.log.Debug("room not placed again", "error", err)
		return err
	}
	if at.Fence.Less(next.Fence) {
		s.log.Debug("room found elsewhere", "to", next.Node, "epoch", next.Fence.Epoch, "reason", failure)
		s.server.hub.found(s.who.Room, next, refusedUnder(at, failure))
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
func (s *session) placeAfter(ctx context.Context, p pin.Pin, expect headroom.Room, failure error) (pin.Pin, error) {
	if refused, ok := errors.AsType[*sfulink.RefusedError](failure); ok {
		switch {
		case refusesRoom(refused):
			return s.server.hub.placeAgain(ctx, s.who.Room, p, expect)
		case refused.Code == control.Refusal_REFUSAL_UNCONFIRMED:
			return p, nil
		case refused.Code == control.Refusal_REFUSAL_NOT_HERE:
			return s.pass(ctx, expect, 0) // only the door can let this person in
		}
		if !refused.Current.IsZero() {
			s.server.parts.Placer.Observe(s.who.Room, refused.Current)
		}
	}
	return throughDoor(s.server.hub.place(ctx, s.who.Room, expect))
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

// Jitter keeps clients out of step. pause is false when ctx ended.
func (s *session) pause(ctx context.Context, tries int) bool {
	pause := min(s.server.config.RetryBase<<min(tries, 16), s.server.config.RetryMax)
	pause = pause/2 + rand.N(pause/2+1)
	return backoff.Sleep(ctx, pause)
}
