package e2e

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/lab/devcluster"
)

// TestCallSurvivesTheKillOfItsNode is the idea of the project: three people in a
// room and two in another, on different SFU nodes; the first room's node is
// killed, and its call goes on in the same connections while the other room
// notices nothing.
func TestCallSurvivesTheKillOfItsNode(t *testing.T) {
	needChromium(t)
	c := startCluster(t, devcluster.Options{})
	roomA, roomB := roomOn(t, "sfu-1", "alpha"), roomOn(t, "sfu-2", "beta")
	inA := []*participant{
		join(t, c.URL(), roomA, "Ada", nil), join(t, c.URL(), roomA, "Alan", nil), join(t, c.URL(), roomA, "Annie", nil),
	}
	inB := []*participant{join(t, c.URL(), roomB, "Barbara", nil), join(t, c.URL(), roomB, "Blaise", nil)}
	for _, p := range slices.Concat(inA, inB) {
		p.knowsItself(t)
	}
	allDecodeAll(t, time.Minute, inA)
	allDecodeAll(t, time.Minute, inB)

	beforeA, beforeB := heldOnce(t, c, roomA), heldOnce(t, c, roomB)
	// Where they are placed, unless the machine stood still and a node was taken for dead meanwhile.
	if beforeA.Node == beforeB.Node {
		t.Fatalf("both rooms are on %s", beforeA.Node)
	}
	statsA := make([]callStats, len(inA))
	for i, p := range inA {
		p.mark(t)
		statsA[i] = p.mustStats(t)
	}
	for _, p := range inB {
		p.mark(t)
	}

	if err := c.Kill(t.Context(), beforeA.Node, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for i, p := range inA {
		eventually(t, 30*time.Second, p.name+" is moved", func() error { return moved(p, statsA[i], "restart") })
	}
	allDecodeAll(t, 30*time.Second, inA)
	for i, p := range inA {
		p.unchanged(t)
		after := p.mustStats(t)
		if after.PcID != statsA[i].PcID {
			t.Errorf("%s: connection %d became %d", p.name, statsA[i].PcID, after.PcID)
		}
		last := after.Migrations[len(after.Migrations)-1]
		t.Logf("gap of %s: %.0f ms (%s, attempt %d)", p.name, last.GapMs, last.How, last.Attempt)
	}

	afterA := heldOnce(t, c, roomA)
	if afterA.Epoch != beforeA.Epoch+1 {
		t.Errorf("room %s went from epoch %d to %d, want exactly one re-homing", roomA, beforeA.Epoch, afterA.Epoch)
	}
	undisturbed(t, c, beforeB, inB)
	pinsNameOnlyLiveNodes(t, c)
}

// moved says whether a page has reported exactly one more migration, in that way.
func moved(p *participant, before callStats, how string) error {
	s, err := p.stats()
	if err != nil {
		return err
	}
	migrations := s.Migrations[len(before.Migrations):]
	switch {
	case s.Epoch <= before.Epoch:
		return fmt.Errorf("still at epoch %d", s.Epoch)
	case len(migrations) == 0:
		return fmt.Errorf("no migration reported at epoch %d", s.Epoch)
	case len(migrations) > 1:
		return fmt.Errorf("%d migrations: %+v", len(migrations), migrations)
	case migrations[0].How != how:
		return fmt.Errorf("migrated by %s, want %s", migrations[0].How, how)
	}
	return nil
}

// undisturbed checks that a room on a healthy node noticed nothing: same node and
// epoch, no new offer, no packet dropped, same connections, media flowing.
func undisturbed(t *testing.T, c *devcluster.Cluster, before heldRoom, people []*participant) {
	t.Helper()
	after := heldOnce(t, c, before.Room)
	if after.Node != before.Node || after.Epoch != before.Epoch {
		t.Errorf("room %s went from %s epoch %d to %s epoch %d", before.Room, before.Node, before.Epoch, after.Node, after.Epoch)
	}
	if after.PacketsDropped != before.PacketsDropped {
		t.Errorf("room %s: %d packets dropped while another node died", before.Room, after.PacketsDropped-before.PacketsDropped)
	}
	offers := make(map[string]uint64)
	for _, p := range before.Peers {
		offers[p.Peer] = p.Offers
	}
	for _, p := range after.Peers {
		if p.Offers != offers[p.Peer] {
			t.Errorf("room %s: peer %s offered %d times, before %d", before.Room, p.Peer, p.Offers, offers[p.Peer])
		}
	}
	for _, p := range people {
		p.unchanged(t)
		if s := p.mustStats(t); s.Epoch != before.Epoch {
			t.Errorf("%s: went from epoch %d to %d, %+v", p.name, before.Epoch, s.Epoch, s.Migrations)
		}
	}
	allDecodeAll(t, 30*time.Second, people)
}
