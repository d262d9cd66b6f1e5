package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// A hundred people join one new room through three signaling nodes with different views, and end on one pin.
func TestConcurrentPlacesThroughDifferentViewsEndOnOnePin(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		var signalingNodes []*Orchestrator
		for _, view := range []*cluster.View{
			viewOf(sfu("a", 1), sfu("b", 1), sfu("c", 1)),
			viewOf(sfu("b", 1), sfu("c", 1), sfu("d", 1)),
			viewOf(sfu("a", 1), sfu("d", 1)),
		} {
			everybody := &addresses{boots: make(map[string]pin.BootID)}
			for _, id := range []string{"a", "b", "c", "d"} {
				everybody.boots[id+".test:7000"] = bootOf(id, 1)
			}
			signalingNodes = append(signalingNodes, New(onRedis(t, server), fixed(view), everybody, patient(), quiet))
		}
		pins, errs := make([]pin.Pin, 100), make([]error, 100)
		var all sync.WaitGroup
		for i := range pins {
			all.Go(func() { pins[i], errs[i] = signalingNodes[i%3].Place(t.Context(), "crowd", headroom.Room{}) })
		}
		all.Wait()
		for i, p := range pins {
			if errs[i] != nil || p != pins[0] || p.IsZero() {
				t.Fatalf("join %d got %v, %v; join 0 got %v", i, p, errs[i], pins[0])
			}
		}
		for i, signaling := range signalingNodes {
			if signaling.cache.Of("crowd") != pins[0] {
				t.Errorf("signaling node %d remembers %v", i, signaling.cache.Of("crowd"))
			}
			if held := len(signaling.ledger.reserved); held > 1 {
				t.Errorf("signaling %d reserves %d rooms, want its claim at most", i, held)
			}
		}
	})
}

// Three signaling nodes re-home a dead node's rooms at once, each room through all of them.
func TestConcurrentRehomesConverge(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		old := pinAt("dead", 1, 5000, 1)
		var signalingNodes []*Orchestrator
		for range 3 {
			signalingNodes = append(signalingNodes, New(onRedis(t, server), fixed(viewOf(sfu("a", 1), sfu("b", 1), sfu("c", 1))), &addresses{}, patient(), quiet))
		}
		const rooms = 30
		got := make([][3]pin.Pin, rooms)
		var all sync.WaitGroup
		for i := range rooms {
			room := ring.RoomID(fmt.Sprintf("room-%d", i))
			if _, _, err := onRedis(t, server).Claim(t.Context(), room, old, ""); err != nil {
				t.Fatal(err)
			}
			for j, signaling := range signalingNodes {
				all.Go(func() {
					var err error
					if got[i][j], err = signaling.Rehome(t.Context(), room, old, headroom.Room{}); err != nil {
						t.Errorf("rehome %s: %v", room, err)
					}
				})
			}
		}
		all.Wait()
		for i, pins := range got {
			if pins[0] != pins[1] || pins[1] != pins[2] || pins[0].Fence.Epoch != 5001 || pins[0].Node == "dead" {
				t.Errorf("room %d ended on %v", i, pins)
			}
		}
	})
}

func TestStoreThatIsAwayIsGivenUpWithinTheBudget(t *testing.T) {
	silent, refused := testkit.SilentAndRefused(t)
	for name, address := range map[string]string{"silent": silent, "refused": refused} {
		signaling := New(onRedis(t, storetest.Server{URL: "redis://" + address}), fixed(viewOf(sfu("a", 1))), &addresses{}, DefaultConfig(), quiet)
		began := time.Now()
		_, err := signaling.Place(t.Context(), "r", headroom.Room{})
		if took := time.Since(began); !errors.Is(err, ErrStoreUnavailable) || took > 3*time.Second {
			t.Errorf("%s: Place = %v after %v, want ErrStoreUnavailable after about 0.3 s", name, err, took)
		}
		if len(signaling.ledger.reserved) != 0 {
			t.Errorf("%s: a claim that failed stays reserved", name)
		}
	}
}

// The budget is one for the whole call: a stale pin costs two trips, not two budgets.
func TestStoreBudgetCoversAllTripsOfACall(t *testing.T) {
	for slow, want := range map[time.Duration]error{time.Hour: ErrStoreUnavailable, 200 * time.Millisecond: ErrStoreUnavailable, 100 * time.Millisecond: nil} {
		synctest.Test(t, func(t *testing.T) {
			store, view := testkit.NewMemoryStore(), viewOf(sfu("a", 2))
			store.Put("r", pinAt("a", 1, 5000, 1).Encode())
			store.Slow(slow)
			signaling := New(store, fixed(view), &addresses{}, DefaultConfig(), quiet)
			began := time.Now()
			_, err := signaling.Place(t.Context(), "r", headroom.Room{})
			if took := time.Since(began); !errors.Is(err, want) || took > 300*time.Millisecond {
				t.Errorf("two trips of %v each: %v after %v, want %v within 300 ms", slow, err, took, want)
			}
		})
	}
}

func TestCallerWhoGivesUpGetsHisOwnError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	signaling := New(onRedis(t, storetest.Start(t, "miniredis")), fixed(viewOf(sfu("a", 1))), &addresses{}, patient(), quiet)
	if _, err := signaling.Place(ctx, "r", headroom.Room{}); !errors.Is(err, context.Canceled) || errors.Is(err, ErrStoreUnavailable) {
		t.Errorf("Place = %v, want the context's error", err)
	}
}

// Concurrent joins on one unknown boot share a dial.
func TestConcurrentProbesOfOneAddressAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		signaling := New(testkit.NewMemoryStore(), fixed(viewOf(sfu("a", 1))), proberFunc(func(context.Context, string) (pin.BootID, error) {
			dials.Add(1)
			<-time.After(100 * time.Millisecond)
			return bootOf("x", 1), nil
		}), DefaultConfig(), quiet)
		p := pinAt("x", 1, 5000, 1)
		if _, _, err := signaling.store.Claim(t.Context(), "r", p, ""); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if got, err := signaling.Place(t.Context(), "r", headroom.Room{}); got != p || err != nil {
					t.Errorf("Place = %v, %v, want the pin of the boot that answered", got, err)
				}
			})
		}
		all.Wait()
		if n := dials.Load(); n != 1 {
			t.Errorf("the address was dialed %d times for 20 joins at once", n)
		}
	})
}

type proberFunc func(context.Context, string) (pin.BootID, error)

func (f proberFunc) Holds(context.Context, string, ring.RoomID) (pin.Pin, error) {
	return pin.Pin{}, nil
}

func (f proberFunc) BootAt(ctx context.Context, control string) (pin.BootID, error) {
	return f(ctx, control)
}

func TestExplainSaysWhyEveryNodeWasPassedOver(t *testing.T) {
	full, draining, busy := sfu("a", 1), sfu("b", 1), sfu("c", 1)
	full.Load.EgressBitsPerSecond = 1_000_000_000
	busy.Load.EgressBitsPerSecond = 900_000_000
	draining.Draining = true
	view := viewOf(full, draining, busy, sfu("d", 1))
	signaling := New(onRedis(t, storetest.Start(t, "miniredis")), fixed(view), &addresses{}, patient(), quiet)
	room := ring.RoomID("tea")
	for n := 0; !slices.Equal(slices.Collect(view.Ring.Successors(room)), []ring.NodeID{"a", "c", "d"}); n++ {
		room = ring.RoomID(fmt.Sprint("tea-", n))
	}
	e, err := signaling.Explain(t.Context(), room)
	if err != nil {
		t.Fatal(err)
	}
	if e.State != "the room has no pin" || len(e.Walk) != 3 || e.Walk[0].Node != e.Owner {
		t.Fatalf("Explain = %+v", e)
	}
	why, chosen := make(map[ring.NodeID]string), make(map[ring.NodeID]bool)
	for _, step := range e.Walk {
		why[step.Node], chosen[step.Node] = step.Why, step.Chosen
	}
	want := map[ring.NodeID]string{"a": "no headroom", "c": "above the bound", "d": "within the bound"}
	if !maps.Equal(why, want) || !maps.Equal(chosen, map[ring.NodeID]bool{"a": false, "c": false, "d": true}) {
		t.Errorf("the walk says %v, chosen %v, want %v", why, chosen, want)
	}
	p, err := signaling.Place(t.Context(), room, headroom.Room{})
	if err != nil || p.Node != "d" {
		t.Fatalf("Place = %v, %v, want what Explain said", p, err)
	}
	if e, err = signaling.Explain(t.Context(), room); err != nil || e.Pin != p || !strings.Contains(e.State, "alive") {
		t.Errorf("Explain = %+v, %v", e, err)
	}
	moved, err := signaling.Move(t.Context(), room, p, "c", headroom.Room{}, pin.WhyOperator)
	if err != nil {
		t.Fatal(err)
	}
	if e, err = signaling.Explain(t.Context(), room); err != nil || len(e.History) != 1 || e.Unrecorded != 0 || !e.Claimed.Equal(time.UnixMilli(int64(p.Fence.Epoch))) {
		t.Fatalf("Explain = %+v, %v", e, err)
	}
	if want := "passed over a (101 % with the room: no headroom), c (91 % with the room: above the bound)"; e.ClaimedWhy != want {
		t.Errorf("the claim passed over %q, want %q", e.ClaimedWhy, want)
	}
	if h := e.History[0]; h.From != "d" || h.To != "c" || h.Epoch != moved.Fence.Epoch || h.Why != pin.WhyOperator {
		t.Errorf("the move is told as %+v", h)
	}
	text, err := json.Marshal(e)
	if odd := regexp.MustCompile(`"[A-Z]\w*":`).Find(text); err != nil || odd != nil {
		t.Errorf("as JSON the explanation has a field %s, %v", odd, err)
	}
}

// Nodes die and restart, signaling nodes learn of it late or never. Every write fences all earlier ones, and no
// signaling node hands out a pin that it knows to be dead.
func TestFencesOnlyGrowWhateverSignalingNodesSee(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		memoryStore, truth := testkit.NewMemoryStore(), map[string]int{"a": 1, "b": 1, "c": 1}
		gone := make(map[pin.BootID]cluster.Departure)
		where := &addresses{boots: make(map[string]pin.BootID)}
		current := func() *cluster.View {
			var nodes []cluster.Node
			for id, n := range truth {
				where.boots[id+".test:7000"] = bootOf(id, n)
				nodes = append(nodes, sfu(id, n))
			}
			view := viewOf(nodes...)
			maps.Copy(view.Gone, gone)
			return view
		}
		var signalingNodes []*Orchestrator
		var sees []*views
		for range 3 {
			v := fixed(current())
			sees, signalingNodes = append(sees, v), append(signalingNodes, New(memoryStore, v, where, patient(), quiet))
		}
		room := rapid.SampledFrom([]ring.RoomID{"r", "s"})
		signaling := rapid.IntRange(0, 2)
		node := rapid.SampledFrom([]string{"a", "b", "c"})
		judge := func(what string, i int, p pin.Pin, err error) {
			if err != nil && !errors.Is(err, ErrContended) {
				t.Fatalf("%s: %v", what, err)
			}
			if _, dead := sees[i].View().Gone[p.Boot]; dead {
				t.Fatalf("%s handed out %v, whose process this signaling node saw die", what, p)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"restart": func(t *rapid.T) {
				id := node.Draw(t, "node")
				gone[bootOf(id, truth[id])] = cluster.DepartureDead
				truth[id]++
				_ = current()
			},
			"learn": func(t *rapid.T) { sees[signaling.Draw(t, "signaling")].Store(current()) },
			"place": func(t *rapid.T) {
				i := signaling.Draw(t, "signaling")
				p, err := signalingNodes[i].Place(context.Background(), room.Draw(t, "room"), headroom.Room{})
				judge("place", i, p, err)
			},
			"rehome the dead": func(t *rapid.T) {
				i, r := signaling.Draw(t, "signaling"), room.Draw(t, "room")
				p, ok, _ := memoryStore.Get(context.Background(), r)
				if _, dead := gone[p.Boot]; ok && dead {
					p, err := signalingNodes[i].Rehome(context.Background(), r, p, headroom.Room{})
					if errors.Is(err, ErrNoNodes) { // All that this signaling node sees alive is dead.
						err = nil
					}
					judge("rehome", i, p, err)
				}
			},
			"": func(t *rapid.T) {
				if memoryStore.Fault() != "" {
					t.Fatal(memoryStore.Fault())
				}
			},
		})
	})
}
