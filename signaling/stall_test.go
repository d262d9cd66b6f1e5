package signaling

import (
	"context"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestStalledClientsAreCounted: what clients say of a node counts for as long as their room is there and they are.
func TestStalledClientsAreCounted(t *testing.T) {
	_, one, two, e := lobbyAndSpare(t)
	ada, _ := e.join("lobby", "Ada")
	grace, _ := e.join("lobby", "Grace")
	hear[*wire.PeerJoined](ada)
	counts := func() [2]int {
		stalled, all := e.Hub().Stalled(one.boot)
		return [2]int{stalled, all}
	}
	say := func(c *client, epoch uint64) {
		c.say(&wire.Stalled{Epoch: epoch, SilentMs: 2000})
		c.say(&wire.Ping{T: 1})
		hear[*wire.Pong](c) // What was said before it has been handled.
	}

	say(ada, firstEpoch-1) // of an older place
	if got := counts(); got != [2]int{} {
		t.Fatalf("%v stalled of all, want none: nobody has said so of this place", got)
	}
	say(ada, firstEpoch)
	say(ada, firstEpoch)
	if got := counts(); got != [2]int{1, 2} {
		t.Fatalf("%v stalled of all, want 1 of 2", got)
	}
	say(grace, firstEpoch)
	if got := counts(); got != [2]int{2, 2} {
		t.Fatalf("%v stalled of all, want 2 of 2", got)
	}
	grace.say(&wire.Leave{})
	testkit.Eventually(t, "Grace is gone", func() bool { return counts() == [2]int{1, 1} })

	e.Hub().Moved(context.Background(), "lobby", two.pin(firstEpoch+1))
	hear[*wire.Restart](ada)
	if stalled, _ := e.Hub().Stalled(two.boot); stalled != 0 || counts() != [2]int{} {
		t.Fatalf("%d stalled at the room's new node", stalled)
	}
}
