package sfu

import (
	"fmt"
	"testing"
	"time"

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

// TestAFullRoomKeepsThePlacesOfWhoIsOnTheirWay: a stranger takes none of them while the room moves.
func TestAFullRoomKeepsThePlacesOfWhoIsOnTheirWay(t *testing.T) {
	t.Parallel() // it waits for the grace time to run out, in which a busy machine must attach five
	s := newStage(t, "one", func(c *Config) { c.Limits.PeersPerRoom, c.Grace = 4, 4*time.Second })
	alice, _ := s.attach("room", "alice", 2, func(a *control.Attach) {
		a.KnownRoster = 1
		a.Expected = []*control.Peer{{Id: "alice"}, {Id: "bob"}, {Id: "carol"}, {Id: "dave"}}
	})
	mallory := s.attachMessage(s.pin(s.epoch), "room", "mallory", 1)
	if got := s.refusal(mallory); got.GetCode() != control.Refusal_REFUSAL_ROOM_FULL {
		t.Fatalf("a stranger to a full room that moves: %v", got)
	}
	s.attach("room", "bob", 2)
	s.attach("room", "carol", 2)
	// The hidden are expected by nobody.
	_, sees := s.attach("room", "spy", 2, func(a *control.Attach) { a.Peer.Hidden, a.KnownRoster = true, 1 })
	if ids := rosterIDs(sees.GetRoster()); ids != "alice bob carol dave spy " {
		t.Errorf("the hidden one, who comes along, sees %q", ids)
	}
	alice.await("dave's leave", func(e *control.PeerEvent) bool { return e.GetRosterChange().GetLeft() == "dave" })
	if got := s.refusal(mallory); got.GetCode() != control.Refusal_REFUSAL_ROOM_FULL {
		t.Errorf("a stranger while four are here: %v", got)
	}
	alice.send(&control.PeerMessage{Message: &control.PeerMessage_Leave{Leave: &control.Leave{}}})
	alice.awaitEnd()
	s.attach("room", "mallory", 1)
}
