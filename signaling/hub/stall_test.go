package hub

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// stalledHub has clients in rooms of five, on so many nodes, who all get nothing.
func stalledHub(nodes, clients int) *Hub {
	h := newHub(1)
	for i := range clients {
		s := newClient(ring.RoomID(fmt.Sprint("room-", i/5)))
		h.Enter(s, pin.Pin{Fence: pin.Fence{Epoch: 1}, Boot: bootNumber(i / 5 % nodes)})
		h.ReportStall(s, 1)
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
