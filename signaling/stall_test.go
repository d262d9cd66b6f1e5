package signaling

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// stalledHub has clients in rooms of five, on so many nodes, who all get nothing.
func stalledHub(nodes, clients int) *Hub {
	h := newHub(nil, func() int { return 1 }, panics.New(), slog.New(slog.DiscardHandler))
	for i := range clients {
		s := &session{who: access.Session{Room: ring.RoomID(fmt.Sprint("room-", i/5))}, moves: make(chan pin.Pin, 1)}
		h.enter(s, pin.Pin{Fence: pin.Fence{Epoch: 1}, Boot: bootNumber(i / 5 % nodes)})
		h.stalled(s, 1)
	}
	return h
}

func bootNumber(i int) pin.BootID { return pin.BootID(fmt.Sprint("b-", i)) }

// sweep asks about every node, as the detector does.
func sweep(h *Hub, boots []pin.BootID) (stalled, all int) {
	for _, boot := range boots {
		of, people := h.Stalled(boot)
		stalled, all = stalled+of, all+people
	}
	return stalled, all
}

func bootsOf(nodes int) (boots []pin.BootID) {
	for i := range nodes {
		boots = append(boots, bootNumber(i))
	}
	return boots
}

// TestAskingAboutStallsCostsNothingPerNode: many nodes with few stalls each cost what one node with all of them does.
func TestAskingAboutStallsCostsNothingPerNode(t *testing.T) {
	const clients, nodes = 2000, 200
	took := func(nodes int) time.Duration { // the best of ten
		h, boots, best := stalledHub(nodes, clients), bootsOf(nodes), time.Duration(math.MaxInt64)
		for range 10 {
			began := time.Now()
			if stalled, all := sweep(h, boots); stalled != clients || all != clients {
				t.Fatalf("%d stalled of %d, want all of %d", stalled, all, clients)
			}
			best = min(best, time.Since(began))
		}
		return best
	}
	one, many := took(1), took(nodes)
	t.Logf("a sweep takes %v with one node, %v with %d", one, many, nodes)
	if many > nodes/10*one {
		t.Errorf("a sweep of %d nodes takes %v, %v if one has all stalls", nodes, many, one)
	}
}

func BenchmarkStalled(b *testing.B) {
	for _, nodes := range []int{1, 100} {
		b.Run(fmt.Sprint(nodes, "-nodes"), func(b *testing.B) {
			h, boots := stalledHub(nodes, 5000), bootsOf(nodes)
			for b.Loop() {
				sweep(h, boots)
			}
		})
	}
}

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
