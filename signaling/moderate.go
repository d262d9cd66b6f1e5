package signaling

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const (
	moderateLimit = 2 * time.Second
	againAfter    = 50 * time.Millisecond
)

var (
	errNotModerator = errors.New("this needs somebody who runs the room (roomAdmin)")
	errUnseen       = errors.New("who is hidden raises no hand and sends no reaction: the others would see it")
	errNotHere      = errors.New("that person is not in the room any more")
	errAskedAlready = errors.New("that person was asked a moment ago")
)

func (s *session) express(m wire.Message) error {
	if s.who.Hidden {
		return errUnseen
	}
	if !s.server.limits.Express(s.person()) {
		return errFlood
	}
	switch m := m.(type) {
	case *wire.Hand:
		s.known.hand = nil
		if s.link == nil {
			s.known.hand = m
		}
		s.say(handMessage(m))
	case *wire.React:
		s.say(&control.PeerMessage{Message: &control.PeerMessage_React{React: &control.React{Emoji: m.Emoji}}})
	}
	return nil
}

// moderate asks the room's node in the background; refusals come then.
func (s *session) moderate(ctx context.Context, m *wire.Moderate) error {
	if !s.who.CanModerate {
		return errNotModerator
	}
	if !s.server.limits.Moderate(s.person()) || m.Act == wire.ActAskUnmute && !s.server.limits.AskUnmute(s.person()) {
		return errFlood
	}
	s.log.Info("moderator acts", "identity", s.who.Identity, "act", m.Act, "on", m.Peer)
	if m.Act == wire.ActRemove {
		request := &control.RemoveRequest{Room: string(s.who.Room), Peer: string(m.Peer)}
		detached := context.WithoutCancel(ctx) // what is begun is finished
		s.work(func() {
			if answer := s.server.removeAndNote(detached, request); len(answer.Removed) == 0 {
				s.socket.send(faultOf(whyNobody(len(answer.Unreachable) > 0)))
			}
		})
		return nil
	}
	request := &control.ModerateRequest{
		Room: string(s.who.Room), Act: controlAct(m.Act), Peer: string(m.Peer), Source: controlSource(m.Source), ByPeer: s.who.Peer,
	}
	if !s.who.Hidden {
		request.By = s.who.Name
	}
	if m.Act == wire.ActGiveUp {
		request.Peer = s.who.Peer
	}
	at := s.pin
	s.work(func() {
		if err := s.server.moderateAt(ctx, at, request); err != nil {
			s.log.Debug("not moderated", "act", m.Act, "error", err)
			s.socket.send(faultOf(err))
		}
	})
	return nil
}

// moderateAt asks where the room is, again while it is on its way there.
func (s *Server) moderateAt(ctx context.Context, at pin.Pin, request *control.ModerateRequest) error {
	ctx, cancel := context.WithTimeout(ctx, moderateLimit)
	defer cancel()
	var reply *control.ModerateReply
	var err error
	for {
		var client control.MediaClient
		if client, err = s.parts.Pool.Client(at.Control); err == nil {
			reply, err = client.Moderate(ctx, request)
		}
		if !control.IsNotOpen(err) || !backoff.Sleep(ctx, againAfter) {
			break
		}
		at = s.hub.latest(ring.RoomID(request.GetRoom()), at)
	}
	switch {
	case err != nil:
		return errors.Join(sfulink.ErrUnreachable, err)
	case len(reply.GetDone()) == 0 && len(reply.GetTooSoon()) > 0:
		return errAskedAlready
	case len(reply.GetDone()) == 0 && request.GetPeer() != "":
		return errNotHere
	}
	return nil
}

func whyNobody(unreachable bool) error {
	if unreachable {
		return sfulink.ErrUnreachable
	}
	return errNotHere
}

func controlAct(act wire.Act) control.Act {
	switch act {
	case wire.ActMute:
		return control.Act_ACT_MUTE
	case wire.ActAskUnmute:
		return control.Act_ACT_ASK_UNMUTE
	case wire.ActLowerHand:
		return control.Act_ACT_LOWER_HAND
	case wire.ActGrant:
		return control.Act_ACT_GRANT
	case wire.ActGiveUp:
		return control.Act_ACT_GIVE_UP
	case wire.ActRemove: // another request
	}
	return control.Act_ACT_UNSPECIFIED
}
