package sfu

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
)

func (e *attachStream) react(emoji string) {
	e.send(&control.PeerMessage{Message: &control.PeerMessage_React{React: &control.React{Emoji: emoji}}})
}

// TestABurstOfReactionsIsAHandfulOfEvents, and each is told to everybody once.
func TestABurstOfReactionsIsAHandfulOfEvents(t *testing.T) {
	const people = 40
	s := newStage(t, "one")
	var streams []*attachStream
	for i := range people {
		e, _ := s.attach("room", fmt.Sprintf("p-%02d", i), 1)
		streams = append(streams, e)
	}
	for _, e := range streams {
		e.react("")
		e.react(strings.Repeat("x", emojiBytes+1))
		e.react("👏")
		e.react("👏") // At the same moment it is one.
	}
	for _, e := range streams {
		seen, events := map[string]int{}, 0
		for len(seen) < people {
			event := e.await("reactions", func(e *control.PeerEvent) bool { return e.GetReactions() != nil })
			events++
			for _, reaction := range event.GetReactions().GetReactions() {
				if seen[reaction.GetPeer()]++; reaction.GetEmoji() != "👏" || seen[reaction.GetPeer()] > 2 {
					t.Errorf("%v, %d times", reaction, seen[reaction.GetPeer()])
				}
			}
		}
		if events > people/4 {
			t.Errorf("%d events tell of %d reactions", events, people)
		}
	}
}

func TestReactionsArePacedByPerson(t *testing.T) {
	s := newStage(t, "one")
	bob, _ := s.attach("room", "bob", 1)
	eve, _ := s.attach("room", "eve", 1)
	for i := range 100 {
		eve.react(fmt.Sprint(i))
	}
	// Her stream is in order, so when this is refused all of the above was handled.
	eve.send(&control.PeerMessage{Message: &control.PeerMessage_Attach{Attach: &control.Attach{}}})
	eve.awaitEnd()
	bob.react("🎉")
	told := 0
	for {
		reactions := bob.await("bob's own", func(e *control.PeerEvent) bool { return e.GetReactions() != nil }).GetReactions().GetReactions()
		for _, reaction := range reactions {
			if reaction.GetPeer() == "bob" {
				if told < reactBurst || told > 50 {
					t.Errorf("%d of her 100 were told, want %d and few more", told, reactBurst)
				}
				return
			}
			told++
		}
	}
}
