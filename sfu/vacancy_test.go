package sfu

import (
	"fmt"
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
)

// TestAFullRoomGivesAwayThePlacesOfTheAbsent: who drops sockets keeps nobody out, and takes no place of those who are here.
func TestAFullRoomGivesAwayThePlacesOfTheAbsent(t *testing.T) {
	s := newStage(t, "one", func(c *Config) { c.Limits.PeersPerRoom = 4 })
	of := func(identity string) func(*control.Attach) {
		return func(a *control.Attach) { a.Peer.Identity = identity }
	}
	alice, _ := s.attach("room", "alice", 1, of("alice"))
	gone := func(peer string) {
		t.Helper()
		eventually(t, peer+" to be away", func() bool { return !s.heldPeer("room", peer).GetAttached() })
	}
	// Bob was away before anybody else, and has one place; Eve drops one socket after the other.
	bob, _ := s.attach("room", "bob", 1, of("bob"))
	bob.cancel()
	gone("bob")
	for i := range 8 {
		eve, _ := s.attach("room", fmt.Sprintf("eve-%d", i), 1, of("eve"))
		eve.cancel()
		gone(fmt.Sprintf("eve-%d", i))
	}
	_, carol := s.attach("room", "carol", 1, of("carol"))
	if ids := rosterIDs(carol.GetRoster()); ids != "alice bob eve-7 carol " {
		t.Fatalf("in the room are %s", ids)
	}
	s.attach("room", "dave", 1, of("dave"))
	if _, back := s.attach("room", "erin", 1, of("erin")); rosterIDs(back.GetRoster()) != "alice carol dave erin " {
		t.Fatalf("in the room are %s", rosterIDs(back.GetRoster()))
	}
	if got := s.refusal(s.attachMessage(s.pin(s.epoch), "room", "frank", 1)); got.GetCode() != control.Refusal_REFUSAL_ROOM_FULL {
		t.Fatalf("one more than fit, and all are here: %v", got)
	}
	alice.send(&control.PeerMessage{Message: &control.PeerMessage_Say{Say: &control.Say{Text: "still here"}}})
	alice.await("her own line", func(e *control.PeerEvent) bool { return e.GetChat() != nil })
}
