package signaling

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// A slow network needs at most these; then a new connection is the better bet.
const (
	restartAttempts = 3
	restartAttempt  = 4 * time.Second
)

// The client hears of it once the new node accepts.
func (s *session) moveTo(ctx context.Context, to pin.Pin) {
	if !s.pin.Fence.Less(to.Fence) {
		return
	}
	live := s.server.hub.cameLive(s.who.Room, to.Fence)
	if live {
		s.setLinkAside()
	}
	s.dropLink()
	s.pin, s.cameLive = to, live
	s.reach(ctx)
}

func (s *session) restart(reason string) {
	order := &wire.Restart{
		Placement: s.placement(), Reason: reason,
		Attempts: restartAttempts, AttemptMs: int(restartAttempt.Milliseconds()),
	}
	if s.cameLive {
		order.Live, order.OverlapMs = true, int(liveOverlap.Milliseconds())
	}
	s.socket.send(order)
}

func (s *session) dropLink() {
	s.drop()
	if s.link != nil {
		s.link.Close()
		s.link = nil
	}
}

func (s *session) takeOver(ctx context.Context, r reached) (ending, bool) {
	if r.number != s.expected {
		if r.link != nil {
			r.link.Close()
		}
		return ending{}, false
	}
	switch {
	case r.err != nil && !final(r.err):
		return ending{}, false // the hub's word comes, or the session ends
	case r.err != nil:
		s.log.Info("session ended by its node", "error", r.err)
		return s.bye(r.err)
	}
	alive, moderated := r.link.Attached.GetResumed(), s.own().GetModerator()
	s.link = r.link
	if s.told != s.pin.Boot { // else the same process, and media flows
		s.told, s.known.unanswered, s.known.offered = s.pin.Boot, nil, false
		s.restart("moved")
		s.judge(ctx) // the old node may have known of a removal
	}
	s.server.hub.introduce(s.who.Room, r.link.Pin)
	if roster := r.link.Attached.GetRoster(); !r.link.Attached.GetRosterKnown() {
		if !samePeople(s.known.roster, roster) {
			s.socket.send(&wire.Roster{Roster: wireRoster(roster), Epoch: s.pin.Fence.Epoch, Seq: r.link.Seq})
		}
		s.setRoster(roster)
	}
	s.setEgress(r.link.Attached.GetEgress())
	s.known.path = r.link.Attached.GetPathBitsPerSecond()
	s.setLimited(r.link.Attached.GetLimited())
	if alive {
		s.known.slots = r.link.Attached.GetSlots()
		s.socket.send(&wire.Slots{Slots: wireSlots(s.known.slots), Epoch: s.pin.Fence.Epoch})
	}
	s.followGrant(moderated)
	for _, source := range s.heedSilenced() {
		s.silenced(source, "")
	}
	clear(s.known.unsaid)
	s.repeat()
	s.known.hand = nil
	if !alive && s.known.offered && s.known.unanswered == nil {
		// The same node lost this peer's connection and certificate.
		s.known.offered = false
		if err := s.greet(true); err != nil {
			s.log.Error("client not told that its media ended", "error", err)
		}
	}
	s.log.Debug("attached again", "node", s.pin.Node, "epoch", s.pin.Fence.Epoch, "media_alive", alive)
	return ending{}, false
}

// samePeople spares a move a large room's roster for each client.
func samePeople(told, now []*control.Peer) bool {
	if len(told) != len(now) {
		return false
	}
	known := make(map[string]wire.Peer, len(told))
	for _, p := range told {
		known[p.GetId()] = wirePeer(p)
	}
	return !slices.ContainsFunc(now, func(p *control.Peer) bool { return known[p.GetId()] != wirePeer(p) })
}

func (s *session) repeat() {
	for source, muted := range s.known.muted {
		s.say(muteMessage(source, muted))
	}
	if own := s.own(); own != nil && own.GetName() != s.who.Name {
		s.say(renameMessage(s.who.Name))
	}
	if s.known.hand != nil {
		s.say(handMessage(s.known.hand))
	}
	if s.known.view != nil {
		s.say(viewMessage(s.known.view))
	}
	if s.known.unanswered != nil {
		s.say(offerMessage(s.known.unanswered, s.known.slots))
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
	s.server.hub.introduce(s.who.Room, pin.Pin{}) // the node may have forgotten the room
	s.log.Debug("link ended", "error", err)
	s.reach(ctx)
	return ending{}, false
}

func (s *session) fenced(ctx context.Context, current *control.Fence) {
	refused := &sfulink.RefusedError{Code: control.Refusal_REFUSAL_FENCED, Message: "fenced"}
	if f, err := current.Value(); err == nil {
		refused.Current = f
	}
	at, expect := s.pin, s.expect()
	s.work(func() {
		_ = s.lookAgain(ctx, at, expect, refused, 0)
	})
}
