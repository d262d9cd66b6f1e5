package orchestrator

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// four is what a room of four costs.
func four() headroom.Egress { return headroom.Expect(4).Cost() }

// claimed chooses a node and keeps a room of four there.
func claimed(t *testing.T, l *ledger, view *cluster.View, room ring.RoomID) cluster.Node {
	t.Helper()
	node, made := l.choose(view, room, four(), avoidance{})
	if made.node == "" {
		t.Fatalf("no node for %s", room)
	}
	l.keep(room, pin.Pin{Fence: pin.Fence{Epoch: 1, Nonce: pin.NewNonce()}, Node: node.ID, Boot: node.Boot, Control: node.Control}, headroom.Expect(4))
	return node
}

func (l *ledger) sumsAreRight(t *testing.T) {
	t.Helper()
	var total headroom.Egress
	sums, floors := make(map[pin.BootID]headroom.Egress), make(map[pin.BootID]headroom.Egress)
	for _, r := range l.reserved {
		floors[r.boot] = floors[r.boot].Plus(r.floor)
		total = total.Plus(r.cost)
		sums[r.boot] = sums[r.boot].Plus(r.cost)
	}
	if total != l.total || len(sums) != len(l.sums) {
		t.Fatalf("the ledger sums to %v on %d boots, its entries to %v on %d", l.total, len(l.sums), total, len(sums))
	}
	for boot, sum := range sums {
		if l.sums[boot] != sum || l.floors[boot] != floors[boot] {
			t.Fatalf("boot %s: the ledger says %v and %v, its entries %v and %v", boot, l.sums[boot], l.floors[boot], sum, floors[boot])
		}
	}
}

// A burst between two load reports is spread by the claims of this signaling node alone.
func TestBurstSpreadsBeforeAnyReport(t *testing.T) {
	view, l, on := viewOf(sfu("a", 1), sfu("b", 1), sfu("c", 1)), &ledger{clock: time.Now}, make(map[ring.NodeID]int)
	placed := 0
	for i := 0; placed < 60; i++ {
		room := ring.RoomID(fmt.Sprintf("room-%d", i))
		if owner, _ := view.Ring.Owner(room); owner == "a" {
			on[claimed(t, l, view, room).ID]++
			placed++
		}
	}
	l.sumsAreRight(t)
	// 20 rooms are the mean, 25 the bound.
	if on["a"] > 26 || on["b"] == 0 || on["c"] == 0 {
		t.Errorf("60 rooms of one owner lie %v, want at most 26 on any", on)
	}
}

func TestReservationLapsesUnlessOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		view, l := viewOf(sfu("a", 1)), &ledger{clock: time.Now}
		sum := func() headroom.Egress {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.catchUp(view)
			l.sumsAreRight(t)
			return l.total
		}
		claimed(t, l, view, "never-opened")
		<-time.After(3 * time.Second)
		claimed(t, l, view, "opened")
		l.opened("opened", "a", 7)
		if got, want := sum(), four().Times(2); got != want {
			t.Errorf("both count %v, want %v", got, want)
		}
		<-time.After(2 * time.Second) // 5 s after the first claim
		if got, want := sum(), four(); got != want {
			t.Errorf("after 5 s %v is reserved, want the opened room only: %v", got, want)
		}
		// Report 6 does not include the room yet, report 7 does.
		for seq, want := range map[uint64]headroom.Egress{6: four()} {
			view = withReport(view, "a", seq)
			if got := sum(); got != want {
				t.Errorf("with report %d %v is reserved, want %v", seq, got, want)
			}
		}
		view = withReport(view, "a", 7)
		if got := sum(); got != (headroom.Egress{}) {
			t.Errorf("with report 7 %v is reserved, want nothing", got)
		}
		claimed(t, l, view, "late")
		l.opened("late", "a", 5) // A report that includes it has been seen already.
		if got := sum(); got != (headroom.Egress{}) {
			t.Errorf("%v is reserved for a room that the reports include", got)
		}
		claimed(t, l, view, "lost")
		view = viewOf(sfu("a", 2)) // The process is gone and its rooms with it.
		if got := sum(); got != (headroom.Egress{}) {
			t.Errorf("%v is reserved on a process that is gone", got)
		}
	})
}

// withReport is view with another load report of node.
func withReport(view *cluster.View, id ring.NodeID, seq uint64) *cluster.View {
	node := view.Nodes[id]
	node.Load.Seq = seq
	return viewOf(node)
}

func TestRefusingNodeIsPassedOverForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		view, l := viewOf(sfu("a", 1), sfu("b", 1)), &ledger{clock: time.Now}
		owner := claimed(t, l, view, "r")
		l.refuse("r", owner.Boot)
		if len(l.reserved) != 0 {
			t.Error("a refused room still counts")
		}
		if next := claimed(t, l, view, "r"); next.ID == owner.ID {
			t.Errorf("%s was chosen right after it refused", owner.ID)
		}
		<-time.After(refusalLasts)
		view = viewOf(sfu("a", 1), sfu("b", 1))
		if next := claimed(t, l, view, "r"); next.ID != owner.ID {
			t.Errorf("%s is still passed over %v after it refused", owner.ID, refusalLasts)
		}
		if len(l.refused) != 0 {
			t.Error("lapsed refusals are kept")
		}
	})
}

func TestLedgerIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := sfu("a", 1)
		node.Load.CeilingBitsPerSecond, node.Load.CeilingPacketsPerSecond = 1<<60, 1<<60
		view, l := viewOf(node), &ledger{clock: time.Now}
		for i := range 3 * maxReservations {
			claimed(t, l, view, ring.RoomID(fmt.Sprint(i)))
			claimed(t, l, view, "again-and-again")
		}
		if len(l.reserved) > maxReservations || len(l.order) > 2*maxReservations {
			t.Errorf("%d reservations and %d lapses are kept, want at most %d and twice that", len(l.reserved), len(l.order), maxReservations)
		}
		l.sumsAreRight(t)
		<-time.After(reservationLasts)
		claimed(t, l, view, "one-more")
		if len(l.reserved) != 1 || len(l.order) != 1 {
			t.Errorf("%d reservations and %d lapses after everything lapsed, want 1", len(l.reserved), len(l.order))
		}
	})
}

// Claims under way turn further ones to other nodes, and fill none: most of them find a pin.
func TestClaimsUnderWay(t *testing.T) {
	view, l, on := viewOf(sfu("a", 1), sfu("b", 1), sfu("c", 1)), &ledger{clock: time.Now}, make(map[ring.NodeID]int)
	var boots []pin.BootID
	for i := 0; len(boots) < 5000; i++ {
		room := ring.RoomID(fmt.Sprintf("room-%d", i))
		if owner, _ := view.Ring.Owner(room); owner != "a" {
			continue
		}
		node, made := l.claim(view, room, four(), avoidance{})
		if made.node == "" {
			t.Fatalf("claim %d found no node: those before it are not won", len(boots))
		}
		boots = append(boots, node.Boot)
		if len(boots) <= 60 {
			on[node.ID]++
		}
	}
	// 20 rooms are the mean, 25 the bound.
	if on["a"] > 26 {
		t.Errorf("60 claims on rooms of one owner lie %v, want at most 26 on any", on)
	}
	for _, boot := range boots {
		l.claimEnded(boot, four())
	}
	if len(l.claims) != 0 || l.claimed != (headroom.Egress{}) {
		t.Errorf("all are settled, and still counted: %v, %v", l.claims, l.claimed)
	}
}
