package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// frozenFor is longer than gossip's limit and than the 15 s for which a pin counts as confirmed.
const frozenFor = 20 * time.Second

// TestFrozenOwnerServesNobodyAfterwards stops a node for 20 s. Its room moves
// when gossip has given it up; when it wakes it closes the room, and nobody,
// old or new, is served by it.
func TestFrozenOwnerServesNobodyAfterwards(t *testing.T) {
	t.Parallel() // most of it is waiting
	c := startCluster(t, devcluster.Options{})
	room := roomOn(t, "sfu-2", "frozen")
	bystanders := gather(t, c, roomOn(t, "sfu-3", "calm"), 2)
	g := gather(t, c, room, 3)
	g.everybodyReceives(t, time.Minute)
	bystanders.everybodyReceives(t, time.Minute)
	before := g.onceOn(t, c, time.Minute)
	calm := bystanders.onceOn(t, c, time.Minute)
	if before.Node != "sfu-2" {
		t.Fatalf("room %s is on %s, want sfu-2", room, before.Node)
	}

	if err := c.Kill(t.Context(), "sfu-2", syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	thaw := time.NewTimer(frozenFor) // The length of the pause is the point: it is no wait for a condition.
	at := g.settledAt(t, frozenFor, func(p wire.Placement) bool { return p.Node != "sfu-2" && p.Epoch == before.Epoch+1 })
	g.everybodyReceives(t, time.Minute)
	<-thaw.C
	if err := c.Kill(t.Context(), "sfu-2", syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}

	eventually(t, time.Minute, "every signaling node sees sfu-2 again", func() error { return seenByAll(t, c, "sfu-2") })
	after := g.onceOn(t, c, time.Minute)
	if after.Node != string(at.Node) || after.Epoch != at.Epoch {
		t.Errorf("after the thaw the room is on %s epoch %d, want %s epoch %d", after.Node, after.Epoch, at.Node, at.Epoch)
	}
	late := gather(t, c, room, 1)
	late.settledAt(t, time.Minute, func(p wire.Placement) bool { return p == at })
	g.peers = append(g.peers, late.peers...)
	g.everybodyReceives(t, 30*time.Second)
	g.onceOn(t, c, time.Minute)
	for i, p := range g.peers[:3] {
		if s := p.Stats(); len(s.Restarts) != 1 {
			t.Errorf("person-%d was told to restart %d times, want once: %+v", i, len(s.Restarts), s.Restarts)
		}
	}
	calmAfter := bystanders.onceOn(t, c, time.Minute)
	sameRoom(t, calm, calmAfter)
	pinsNameOnlyLiveNodes(t, c)
}

// sameRoom checks that a room was not touched: same node and epoch, no drop, no
// new offer.
func sameRoom(t *testing.T, before, after heldRoom) {
	t.Helper()
	if after.Node != before.Node || after.Epoch != before.Epoch || after.PacketsDropped != before.PacketsDropped {
		t.Errorf("room %s: %s epoch %d with %d drops became %s epoch %d with %d drops", before.Room,
			before.Node, before.Epoch, before.PacketsDropped, after.Node, after.Epoch, after.PacketsDropped)
	}
	offers := before.Offers()
	for _, p := range after.Peers {
		if p.Offers != offers[p.Peer] {
			t.Errorf("room %s: peer %s offered %d times, before %d", before.Room, p.Peer, p.Offers, offers[p.Peer])
		}
	}
	if after.PacketsForwarded <= before.PacketsForwarded {
		t.Errorf("room %s: no packet was forwarded meanwhile", before.Room)
	}
}
