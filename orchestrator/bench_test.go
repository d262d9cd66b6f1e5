package orchestrator

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/orchestrator/pinowner"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// benchView is a cluster of ten nodes that never fill.
func benchView() *cluster.View {
	var nodes []cluster.Node
	for i := range 10 {
		node := sfu(fmt.Sprintf("sfu-%d", i), 1)
		node.Load.CeilingBitsPerSecond, node.Load.CeilingPacketsPerSecond = 1<<50, 1<<50
		nodes = append(nodes, node)
	}
	return viewOf(nodes...)
}

// settledBench is benchView in which every node has synced its pins in the store's incarnation.
func settledBench(b *testing.B, store pinowner.LeaseStore) *cluster.View {
	b.Helper()
	all, err := store.Incarnations(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	view := benchView()
	for id, node := range view.Nodes {
		node.Load.Synced = pin.IncarnationsOf(all)
		view.Nodes[id] = node
	}
	return view
}

// BenchmarkPlace is one join's placement on the embedded store, on a real one, and in memory, which is the cost of
// deciding alone.
func BenchmarkPlace(b *testing.B) {
	for _, kind := range append([]string{"memory"}, storetest.Kinds()...) {
		for _, room := range []string{"new", "pinned"} {
			b.Run(kind+"/"+room, func(b *testing.B) {
				var store interface {
					PinStore
					pinowner.LeaseStore
				} = testkit.NewMemoryStore()
				if kind != "memory" {
					store = onRedis(b, storetest.Start(b, kind))
				}
				signaling := New(store, fixed(settledBench(b, store)), &addresses{}, patient(), quiet)
				if _, err := signaling.Place(b.Context(), "pinned", headroom.Room{}); err != nil {
					b.Fatal(err)
				}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					which := ring.RoomID("pinned")
					if room == "new" {
						which = ring.RoomID("room-" + strconv.Itoa(i))
					}
					if _, err := signaling.Place(b.Context(), which, headroom.Room{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkPlaceParallel is 64 joins at a time of pinned rooms on a real store.
func BenchmarkPlaceParallel(b *testing.B) {
	store := onRedis(b, storetest.Start(b, "redis"))
	signaling := New(store, fixed(settledBench(b, store)), &addresses{}, patient(), quiet)
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			if _, err := signaling.Place(b.Context(), ring.RoomID(fmt.Sprintf("room-%d", i%1000)), headroom.Room{}); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkDecide is the choice of a node alone: when the ring's owner of the room has headroom, and when it is above the bound, so
// that every node is looked at; and planning a move there.
func BenchmarkDecide(b *testing.B) {
	for _, many := range []int{3, 100, 1000} {
		for _, kind := range []string{"owner", "draw", "plan"} {
			b.Run(fmt.Sprintf("%d/%s", many, kind), func(b *testing.B) {
				var nodes []cluster.Node
				for i := range many {
					nodes = append(nodes, sfu(fmt.Sprintf("sfu-%d", i), 1))
				}
				view := viewOf(nodes...)
				if kind != "owner" {
					first, _ := view.Ring.Owner("room")
					for id, node := range view.Nodes {
						if node.Load.EgressBitsPerSecond = 400_000_000; id == first {
							node.Load.EgressBitsPerSecond = 900_000_000
						}
						view.Nodes[id] = node
					}
				}
				now := time.Now() // plans lapse as others come
				clock := func() time.Time { now = now.Add(time.Millisecond); return now }
				l, need := &ledger{clock: clock}, headroom.Expect(4).Cost()
				b.ReportAllocs()
				for b.Loop() {
					if kind == "plan" {
						l.plan(view, "room", headroom.Expect(4), avoidance{boot: "dead"}, true)
						if l.reserved["room"].node == "" {
							b.Fatal("nowhere")
						}
						continue
					}
					if _, made := l.choose(view, "room", need, avoidance{}); made.node == "" {
						b.Fatal("nowhere")
					}
				}
			})
		}
	}
}
