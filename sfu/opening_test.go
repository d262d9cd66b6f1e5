package sfu

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/pin"
)

// Who asks what a node holds is told of a room that is about to open too: the asker may be about to open it elsewhere.
func TestHoldsNamesARoomThatIsAboutToOpen(t *testing.T) {
	s := newStage(t, "sfu-1")
	ask := func() *control.HoldsReply {
		reply, err := s.client.Holds(t.Context(), &control.HoldsRequest{Room: "r"})
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	if held := ask(); held.GetPin() != nil {
		t.Fatalf("an idle node holds %v", held.GetPin())
	}
	s.owner.mu.Lock()
	s.owner.opening = s.pin(2)
	s.owner.mu.Unlock()
	if p, err := ask().GetPin().Value(); err != nil || p != s.pin(2) {
		t.Errorf("a room about to open: %v, %v", p, err)
	}
}

// A pin that does not stand is to be placed again at once: the code that says so, and no fence that could be taken for a higher one.
func TestPinThatDoesNotStandIsPlacedAgain(t *testing.T) {
	s := newStage(t, "sfu-1")
	s.owner.say(fmt.Errorf("room r: %w", pin.ErrMissing))
	refused := s.refusal(s.attachMessage(s.pin(1), "r", "p", 1))
	if refused.GetCode() != control.Refusal_REFUSAL_FENCED || refused.GetCurrent() != nil {
		t.Errorf("refused with %v", refused)
	}
}

// Somebody is let into an open room, which closes before he is in it: he needs another leave to open it, for its pin may have moved since
// the one that he got was confirmed.
func TestLeaveForAnOpenRoomOpensNone(t *testing.T) {
	s := newStage(t, "one", func(c *Config) { c.Grace = 100 * time.Millisecond })
	alice, _ := s.attach("room", "alice", 1)
	s.owner.meanwhile(func() {
		alice.send(&control.PeerMessage{Message: &control.PeerMessage_Leave{Leave: &control.Leave{}}})
		eventually(t, "the room to close", func() bool { return len(s.rooms().GetRooms()) == 0 })
		s.owner.say(pin.ErrMissing)
	})
	if got := s.refusal(s.attachMessage(s.pin(s.epoch), "room", "bob", 1)); got.GetCode() != control.Refusal_REFUSAL_FENCED {
		t.Errorf("Bob was answered %v, want that the pin does not stand", got)
	}
}
