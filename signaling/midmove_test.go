package signaling

import (
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// closed has a node open no room, for the time being.
func (n *node) closed(refusal control.Refusal) {
	n.set(func() {
		n.refuse = func(*control.Attach) *control.Refused { return &control.Refused{Code: refusal} }
	})
}

func (n *node) open() { n.set(func() { n.refuse = nil }) }

func (n *node) awaited(t *testing.T, people int) {
	t.Helper()
	testkit.Eventually(t, "attempts to attach", func() bool { return len(n.attached()) >= people })
}

// What a moderator does while the room is on its way is done where it arrives, or refused.
func TestModeratingWhileTheRoomMoves(t *testing.T) {
	r, one, two, e := lobbyAndSpare(t)
	ada, _ := e.joinWith("ada", runs)
	_, guest := e.join("lobby", "Bob")
	two.closed(control.Refusal_REFUSAL_UNCONFIRMED)
	one.set(func() { one.moderated = control.NotOpen() })
	two.set(func() { two.moderated = one.moderated })
	to := two.pin(firstEpoch + 1)
	r.placer.set("lobby", to)
	e.Hub().MovedLive(t.Context(), "lobby", to)
	two.awaited(t, 2)
	ada.say(&wire.Moderate{Act: wire.ActMute, Source: wire.SourceMicrophone})
	ada.say(&wire.Moderate{Act: wire.ActMute, Peer: guest.Peer, Source: wire.SourceCamera})
	for range 2 {
		if fault := waitFor[*wire.Error](ada); fault.Code != wire.CodeNodeUnreachable || !fault.Retryable {
			t.Fatalf("while no node has the room open: %+v", fault)
		}
	}
	ada.say(&wire.Moderate{Act: wire.ActMute, Source: wire.SourceMicrophone})
	two.open()
	waitFor[*wire.Restart](ada)
	two.set(func() { two.moderated = nil })
	testkit.Eventually(t, "Bob to be muted", func() bool { return strings.Contains(two.said(), "ACT_MUTE SOURCE_MICROPHONE") })
}

// Who leaves while the room is on its way is not kept where it arrives.
func TestLeavingWhileTheRoomMoves(t *testing.T) {
	r, _, two, e := lobbyAndSpare(t)
	e.join("lobby", "Ada")
	bob, left := e.join("lobby", "Bob")
	two.closed(control.Refusal_REFUSAL_UNCONFIRMED)
	to := two.pin(firstEpoch + 1)
	r.placer.set("lobby", to)
	e.Hub().Moved(t.Context(), "lobby", to)
	two.awaited(t, 2)
	bob.say(&wire.Leave{})
	bob.closed()
	testkit.Eventually(t, "the new node to hear of it", func() bool {
		two.mu.Lock()
		defer two.mu.Unlock()
		return len(two.removals) > 0 && two.removals[0] == string(left.Peer)
	})
}

// A raised or lowered hand and a new name reach the node that the room comes to.
func TestWhatIsSaidWhileTheRoomMoves(t *testing.T) {
	r, _, two, e := lobbyAndSpare(t)
	bob, _ := e.joinWith("bob", func(g *access.Grant) { g.CanRename = true })
	two.closed(control.Refusal_REFUSAL_UNCONFIRMED)
	to := two.pin(firstEpoch + 1)
	r.placer.set("lobby", to)
	e.Hub().Moved(t.Context(), "lobby", to)
	two.awaited(t, 1)
	bob.say(&wire.Hand{Raised: true})
	bob.say(&wire.Rename{Name: "Robert"})
	bob.say(&wire.Ping{})
	waitFor[*wire.Pong](bob)
	two.open()
	for _, want := range []string{"hand true", "Robert"} {
		testkit.Eventually(t, want, func() bool { return strings.Contains(two.said(), want) })
	}
}

// A live move whose target does not open the room goes on as one: the former node still has it.
func TestALiveMoveGoesOnElsewhere(t *testing.T) {
	r, _, two, e := lobbyAndSpare(t)
	three := r.node("sfu-3")
	ada, _ := e.join("lobby", "Ada")
	two.closed(control.Refusal_REFUSAL_DRAINING)
	r.placer.again = func(pin.Pin) (pin.Pin, error) { return three.pin(firstEpoch + 2), nil }
	to := two.pin(firstEpoch + 1)
	r.placer.set("lobby", to)
	e.Hub().MovedLive(t.Context(), "lobby", to)
	if restart := waitFor[*wire.Restart](ada); restart.Node != "sfu-3" || !restart.Live {
		t.Errorf("told %+v", restart)
	}
}
