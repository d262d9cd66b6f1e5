package signaling

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/signaling/sfulink"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// Three tries of four seconds cover a slow network; then a new connection is the better bet.
const (
	restartAttempts = 3
	restartAttempt  = 4 * time.Second
)

// moveTo attaches to the room's new node. The client hears of it once that node has accepted.
func (s *session) moveTo(ctx context.Context, to pin.Pin) {
	if !s.pin.Fence.Less(to.Fence) {
		return
	}
	s.dropLink()
	s.pin = to
	s.reach(ctx)
}

func (s *session) restart(reason string) {
	s.socket.send(&wire.Restart{
		Placement: s.placement(), Reason: reason,
		Attempts: restartAttempts, AttemptMs: int(restartAttempt.Milliseconds()),
	})
}

func (s *session) dropLink() {
	s.drop()
	if s.link != nil {
		s.link.Close()
		s.link = nil
	}
}

// takeOver adopts what reach reached.
func (s *session) takeOver(ctx context.Context, r reached) (ending, bool) {
	if r.number != s.expected {
		if r.link != nil {
			r.link.Close()
		}
		return ending{}, false
	}
	switch {
	case r.err != nil && !final(r.err):
		return ending{}, false // the hub's word is on its way, or this session ends
	case r.err != nil:
		s.log.Info("session ended by its node", "error", r.err)
		return s.byeFor(r.err)
	}
	alive := r.link.Attached.GetResumed()
	s.link = r.link
	if s.told != s.pin.Boot { // else the same process holds the room under a new pin, and media flows
		s.told, s.known.unanswered, s.known.offered = s.pin.Boot, nil, false
		s.restart("moved")
		s.judge(ctx) // The node before may have known of a removal, and died before this session heard.
	}
	if told, roster := s.known.roster, r.link.Attached.GetRoster(); !samePeople(told, roster) {
		s.socket.send(&wire.Roster{Roster: wireRoster(roster), Epoch: s.pin.Fence.Epoch, Seq: r.link.Seq})
	}
	s.setRoster(r.link.Attached.GetRoster())
	s.setEgress(r.link.Attached.GetEgress())
	s.known.path = r.link.Attached.GetPathBitsPerSecond()
	if alive {
		s.known.slots = r.link.Attached.GetSlots()
		s.socket.send(&wire.Slots{Slots: wireSlots(s.known.slots), Epoch: s.pin.Fence.Epoch})
	}
	s.repeat()
	if !alive && s.known.offered && s.known.unanswered == nil {
		// The same node lost this peer's connection. The client must make a new one, because the node's certificate is
		// the old one.
		s.known.offered = false
		if err := s.greet(true); err != nil {
			s.log.Error("client not told that its media ended", "error", err)
		}
	}
	s.log.Debug("attached again", "node", s.pin.Node, "epoch", s.pin.Fence.Epoch, "media_alive", alive)
	return ending{}, false
}

// samePeople reports whether a client sees the same in two rosters, in whatever order. A large room's roster for each of its
// people would cost more than the rest of a move.
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

// repeat tells a new node what the client said.
func (s *session) repeat() {
	for source, muted := range s.known.muted {
		s.say(muteMessage(source, muted))
	}
	if s.known.view != nil {
		s.say(viewMessage(s.known.view))
	}
	if s.known.unanswered != nil {
		s.say(offerMessage(s.known.unanswered, s.known.slots))
	}
}

// say sends to the node if there is a link; repeat makes up for what is lost.
func (s *session) say(m *control.EdgeMessage) {
	if s.link == nil {
		return
	}
	if err := s.link.Send(m); err != nil {
		s.log.Debug("not said", "node", s.pin.Node, "error", err)
	}
}

// linkEnded proves nothing about the node: the same pin is tried until the hub says that the room has moved.
func (s *session) linkEnded(ctx context.Context) (ending, bool) {
	err := s.link.Err()
	if caught, broken := errors.AsType[*panics.Error](err); broken {
		s.report(caught, "what a media node sent broke its reading: link ended")
	}
	s.link.Close()
	s.link = nil
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
		// If this finds nothing, attaching again is refused.
		_ = s.lookAgain(ctx, at, expect, refused, 0)
	})
}
