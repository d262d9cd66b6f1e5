package sfu

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
)

func TestChatReachesEverybodyOfTheRoomOnce(t *testing.T) {
	s := newStage(t, "one")
	alice, _ := s.attach("room", "alice", 1)
	bob, _ := s.attach("room", "bob", 1)
	carol, _ := s.attach("another", "carol", 1)
	say := func(text, id string) {
		alice.send(&control.PeerMessage{Message: &control.PeerMessage_Say{Say: &control.Say{Text: text, Id: id}}})
	}
	say(" ", "blank")
	say(strings.Repeat("x", chatBytes+1), "long")
	say("hello", "c-1")
	say("again", "c-2")
	isChat := func(e *control.PeerEvent) bool { return e.GetChat() != nil }
	for _, listener := range []*attachStream{alice, bob} {
		for i, want := range []string{"hello", "again"} {
			line := listener.await("a line", isChat).GetChat()
			if line.GetText() != want || line.GetPeer() != "alice" || line.GetName() != "alice" || line.GetSeq() != uint64(i+1) || line.GetAtUnixMs() == 0 {
				t.Errorf("line %d is %v", i, line)
			}
		}
	}
	carol.send(&control.PeerMessage{Message: &control.PeerMessage_Say{Say: &control.Say{Text: "only me"}}})
	if line := carol.await("her own line", isChat).GetChat(); line.GetText() != "only me" {
		t.Errorf("another room hears %v", line)
	}
}

// TestChatWaitsForWhoIsExpected: in a move people come one after the other, and the first may say something at once.
func TestChatWaitsForWhoIsExpected(t *testing.T) {
	s := newStage(t, "one")
	isChat := func(e *control.PeerEvent) bool { return e.GetChat() != nil }
	alice, _ := s.attach("room", "alice", 1, func(a *control.Attach) {
		a.Expected = []*control.Peer{{Id: "bob", Identity: "bob", Name: "bob"}}
	})
	say := func(text string) {
		alice.send(&control.PeerMessage{Message: &control.PeerMessage_Say{Say: &control.Say{Text: text}}})
		alice.await("the echo", isChat)
	}
	say("one")
	say("two")
	bob, _ := s.attach("room", "bob", 1)
	carol, _ := s.attach("room", "carol", 1)
	say("three")
	for _, want := range []string{"one", "two", "three"} {
		if line := bob.await("a line", isChat).GetChat(); line.GetText() != want {
			t.Errorf("bob hears %q, want %q", line.GetText(), want)
		}
	}
	if line := carol.await("a line", isChat).GetChat(); line.GetText() != "three" {
		t.Errorf("carol, who is new, hears %q", line.GetText())
	}
}

// TestChatWaitsForWhoResumes: bob's signaling node is dead, or frozen with an open stream, while alice says something.
func TestChatWaitsForWhoResumes(t *testing.T) {
	s := newStage(t, "one")
	isChat := func(e *control.PeerEvent) bool { return e.GetChat() != nil }
	alice, _ := s.attach("room", "alice", 1)
	say := func(text, id string) {
		alice.send(&control.PeerMessage{Message: &control.PeerMessage_Say{Say: &control.Say{Text: text, Id: id}}})
		alice.await("the echo", isChat)
	}
	say("before", "c-0")
	bob, _ := s.attach("room", "bob", 1)
	say("frozen", "c-1")
	say("frozen, without an id", "")
	bob.await("the first line", isChat)
	bob.await("the second line", isChat)
	bob, _ = s.attach("room", "bob", 2)
	if line := bob.await("a line again", isChat).GetChat(); line.GetId() != "c-1" {
		t.Errorf("bob hears %q, want what the frozen node may have kept", line.GetText())
	}
	bob.cancel()
	eventually(t, "bob is detached", func() bool { p := s.heldPeer("room", "bob"); return p != nil && !p.GetAttached() })
	say("dead", "c-2")
	say("dead, without an id", "")
	bob, _ = s.attach("room", "bob", 3)
	for _, want := range []string{"frozen", "dead", "dead, without an id"} {
		if line := bob.await("a line", isChat).GetChat(); line.GetText() != want {
			t.Errorf("bob hears %q, want %q", line.GetText(), want)
		}
	}
}

// TestChatIsPacedByPerson: somebody with many tabs is one person, and takes no line from another.
func TestChatIsPacedByPerson(t *testing.T) {
	s := newStage(t, "one")
	bob, _ := s.attach("room", "bob", 1)
	isChat := func(e *control.PeerEvent) bool { return e.GetChat() != nil }
	for tab := range 10 {
		eve, _ := s.attach("room", fmt.Sprintf("eve-%d", tab), 1, func(a *control.Attach) { a.Peer.Identity = "eve" })
		for range 10 {
			eve.send(&control.PeerMessage{Message: &control.PeerMessage_Say{Say: &control.Say{Text: "eve's"}}})
		}
		// Her stream is in order, so when this is refused all of the above was handled.
		eve.send(&control.PeerMessage{Message: &control.PeerMessage_Attach{Attach: &control.Attach{}}})
		eve.awaitEnd()
	}
	bob.send(&control.PeerMessage{Message: &control.PeerMessage_Say{Say: &control.Say{Text: "bob's"}}})
	heard := 0
	for bob.await("bob's own line", isChat).GetChat().GetText() == "eve's" {
		heard++
	}
	if heard < chatBurst || heard >= 100 {
		t.Errorf("%d of her 100 lines were heard, want %d and few more", heard, chatBurst)
	}
}
