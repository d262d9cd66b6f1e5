package sfu

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/ring"
)

// onLoop changes an open room.
func (s *stage) onLoop(roomID string, change func(*room)) {
	s.t.Helper()
	s.node.mu.Lock()
	r := s.node.rooms[ring.RoomID(roomID)]
	s.node.mu.Unlock()
	if err := r.do(s.t.Context(), func() { change(r) }); err != nil {
		s.t.Fatal(err)
	}
}

// panicsOf asks as an operator does.
func (s *stage) panicsOf() uint64 {
	s.t.Helper()
	reply, err := s.client.Process(s.t.Context(), &control.ProcessRequest{})
	if err != nil {
		s.t.Fatal(err)
	}
	return reply.GetPanics()
}

// TestAMessageThatBreaksTheRoomEndsItsStream: once it costs the stream, which may come back; twice it costs the place, in every room of
// the node. The others go on.
func TestAMessageThatBreaksTheRoomEndsItsStream(t *testing.T) {
	s := newStage(t, "one")
	alice, _ := s.attach("room", "alice", 1)
	s.onLoop("room", func(r *room) { r.acts.lines.limit = nil }) // A line of chat panics now.
	line := &control.PeerMessage{Message: &control.PeerMessage_Say{Say: &control.Say{Text: "hello"}}}
	for generation := range uint64(2) {
		bob, _ := s.attach("room", "bob", generation+1)
		bob.send(line)
		if last := bob.awaitEnd(); last.GetRefused().GetCode() != control.Refusal_REFUSAL_BROKE {
			t.Errorf("the stream ends with %v", last)
		}
	}
	for _, room := range []string{"room", "elsewhere"} {
		if refused := s.refusal(s.attachMessage(s.pin(s.epoch), room, "bob", 3)); refused.GetCode() != control.Refusal_REFUSAL_BROKE {
			t.Errorf("in %s the next attach is refused with %v", room, refused)
		}
	}
	alice.await("bob is gone", func(e *control.PeerEvent) bool { return e.GetRosterChange().GetLeft() == "bob" })
	carol, _ := s.attach("room", "carol", 1)
	carol.send(&control.PeerMessage{Message: &control.PeerMessage_Mute{Mute: &control.Mute{Source: control.Source_SOURCE_MICROPHONE, Muted: true}}})
	alice.await("carol is muted", func(e *control.PeerEvent) bool { return e.GetRosterChange().GetUpdated().GetAudioMuted() })
	if n := s.panicsOf(); n != 2 {
		t.Errorf("%d panics are told, want 2", n)
	}
}

// landmine is a log that panics, while it is armed, at an Attach's last step.
type landmine struct {
	slog.Handler

	armed *atomic.Bool
}

func (l landmine) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "peer attached" && l.armed.Load() {
		panic("of a test")
	}
	return l.Handler.Handle(ctx, r)
}

func (l landmine) WithAttrs(attrs []slog.Attr) slog.Handler {
	return landmine{l.Handler.WithAttrs(attrs), l.armed}
}

// TestAnAttachThatBreaksTheRoomIsRefused: what it left half done is forgotten.
func TestAnAttachThatBreaksTheRoomIsRefused(t *testing.T) {
	mine := landmine{testLog(t).Handler(), new(atomic.Bool)}
	s := newStageWith(t, "one", slog.New(mine), func(c *Config) { c.Grace /= 50 })
	alice, _ := s.attach("room", "alice", 1)
	mine.armed.Store(true)
	if refused := s.refusal(s.attachMessage(s.pin(s.epoch), "room", "bob", 1)); refused.GetCode() != control.Refusal_REFUSAL_BROKE {
		t.Errorf("the attach is refused with %v", refused)
	}
	mine.armed.Store(false)
	alice.await("bob is gone again", func(e *control.PeerEvent) bool { return e.GetRosterChange().GetLeft() == "bob" })
	s.attach("room", "bob", 2)
	alice.await("bob is there", func(e *control.PeerEvent) bool { return e.GetRosterChange().GetJoined().GetId() == "bob" })
}

// TestMediaThatBreaksForwardingEndsItsConnection: the client's next offer gets another one.
func TestMediaThatBreaksForwardingEndsItsConnection(t *testing.T) {
	s := newStage(t, "one")
	stream, _ := s.attach("room", "alice", 1)
	client := newMediaClient(t, 'a', true, 1)
	client.negotiate(stream, nil)
	stream.awaitConnected()
	before := s.connectionOf("room", "alice")
	s.onLoop("room", func(r *room) { r.mediaBroke("alice"); r.mediaBroke("nobody") })
	stream.await("the connection is given up", func(e *control.PeerEvent) bool {
		return e.GetTransport().GetState() == control.TransportState_TRANSPORT_STATE_FAILED
	})
	again := newMediaClient(t, 'b', true, 1)
	again.negotiate(stream, nil)
	stream.awaitConnected()
	if before.Alive() || !s.connectionOf("room", "alice").Alive() {
		t.Error("the connection was not replaced")
	}
}

// panicsAt is a log that panics at a message: so does whoever writes it.
type panicsAt struct {
	slog.Handler

	message string
}

func (p *panicsAt) Handle(ctx context.Context, line slog.Record) error { //nolint:gocritic // as slog.Handler wants it
	if line.Message == p.message {
		panic("of a test")
	}
	return p.Handler.Handle(ctx, line)
}

func (p *panicsAt) WithAttrs(attributes []slog.Attr) slog.Handler {
	return &panicsAt{p.Handler.WithAttrs(attributes), p.message}
}

// TestPacketsThatBreakTheNodeAreStruck: each costs the connection, two the place.
func TestPacketsThatBreakTheNodeAreStruck(t *testing.T) {
	s := newStageWith(t, "one", slog.New(&panicsAt{Handler: testLog(t).Handler(), message: "track published"}))
	stream, _ := s.attach("room", "alice", 1)
	for tag := byte('a'); tag <= 'b'; tag++ {
		client := newMediaClient(t, tag, true, 1)
		client.negotiate(stream, nil)
		stream.awaitConnected()
		client.goSend()
		stream.await("the connection is given up", func(e *control.PeerEvent) bool {
			return e.GetTransport().GetState() == control.TransportState_TRANSPORT_STATE_FAILED
		})
	}
	if refused := s.refusal(s.attachMessage(s.pin(s.epoch), "elsewhere", "alice", 2)); refused.GetCode() != control.Refusal_REFUSAL_BROKE {
		t.Errorf("the next attach is refused with %v", refused)
	}
}
