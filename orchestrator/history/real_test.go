package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// asked is the call of a context.
type asked struct {
	who   string
	what  kind
	about pin.Pin
	began time.Time
}

type askedKey struct{}

// watched records the writes of one signaling node to a real store.
type watched struct {
	*redisstore.Store

	record *record
	told   pin.Fence // the highest that this node was told of
	silent bool      // the present call had no answer
}

// mustExceed is what a fresh claim must be above: what its own node was told of, and what others were told before its
// millisecond. Nonces order two claims within one millisecond, so the second may be lower if the first was lost.
func (s *watched) mustExceed(began time.Time) pin.Fence {
	others := pin.Fence{Epoch: min(s.record.known().Epoch, uint64(began.UnixMilli()))}
	return higher(s.told, others)
}

func (s *watched) wrote(ctx context.Context, w write, do func() (pin.Pin, error)) (pin.Pin, error) {
	a, _ := ctx.Value(askedKey{}).(asked)
	w.known = s.mustExceed(a.began)
	sent := s.record.now()
	found, err := do()
	if err != nil {
		s.silent = true
		s.record.pending(a.who, w, sent)
		return found, err
	}
	s.told = higher(s.told, found.Fence)
	in := input{kind: kindWrite, call: a.what, who: a.who, pin: a.about, tried: []write{w}}
	s.record.add(in, output{pin: found}, sent, s.record.now())
	return found, nil
}

func (s *watched) Claim(ctx context.Context, r ring.RoomID, p pin.Pin, why string) (found pin.Pin, in pin.Incarnation, err error) {
	found, err = s.wrote(ctx, write{next: p}, func() (pin.Pin, error) {
		found, in, err = s.Store.Claim(ctx, r, p, why)
		return found, err
	})
	return found, in, err
}

func (s *watched) Swap(ctx context.Context, r ring.RoomID, old, next pin.Pin, why string) (found pin.Pin, in pin.Incarnation, err error) {
	found, err = s.wrote(ctx, write{old: value{pin: old}, next: next}, func() (pin.Pin, error) {
		found, in, err = s.Store.Swap(ctx, r, old, next, why)
		return found, err
	})
	return found, in, err
}

// Get is what a node without headroom does instead of a claim. Unanswered, its pin comes from memory, too.
func (s *watched) Get(ctx context.Context, r ring.RoomID) (pin.Pin, bool, error) {
	found, ok, err := s.Store.Get(ctx, r)
	if err != nil {
		s.silent = true
	}
	return found, ok, err
}

// still is a cluster in which nothing changes and nobody holds a room.
type still struct{ view *cluster.View }

func (s still) View() *cluster.View { return s.view }

func (s still) BootAt(context.Context, string) (pin.BootID, error) {
	return "", context.DeadlineExceeded
}

func (s still) Holds(context.Context, string, ring.RoomID) (pin.Pin, error) { return pin.Pin{}, nil }

func stillCluster() still {
	v := &cluster.View{Settled: true, Nodes: make(map[ring.NodeID]cluster.Node)}
	for _, id := range []ring.NodeID{"a", "b", "c"} {
		v.Nodes[id] = cluster.Node{ID: id, Boot: pin.BootID("0000000000001-" + id), Role: cluster.RoleSFU, Control: address(id)}
	}
	v.Ring = ring.New([]ring.NodeID{"a", "b", "c"})
	return still{v}
}

// Signaling nodes place, re-home and refuse one room on real stores that are emptied.
func TestHistoriesOfRealStores(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		for seed := range uint64(12) {
			r := newRecord()
			var all sync.WaitGroup
			for i := range 5 {
				all.Go(func() { realCaller(t, server, r, seed, i, 8) })
			}
			all.Go(func() {
				random := rand.New(rand.NewPCG(seed, 99))
				for range 3 {
					<-time.After(time.Duration(random.Int64N(int64(50 * time.Millisecond))))
					from := r.now()
					if err := server.Raw.FlushAll(t.Context()).Err(); err != nil {
						t.Error(err)
					}
					r.lose("the store was emptied", value{}, from, r.now())
				}
			})
			all.Wait()
			v := evaluate(r)
			if len(v.faults) > 0 {
				v.report(t, fmt.Sprintf("%s-%d", server.Name, seed))
				return
			}
			t.Logf("seed %d: %d operations; calls that failed: %v", seed, len(v.ops), r.failed)
			if err := server.Raw.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// Two claims within one millisecond, the first of them lost: either may have the higher fence.
func TestClaimsWithinOneMillisecond(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		for name, c := range map[string]struct {
			behind time.Duration
			right  bool
		}{"the same millisecond": {right: true}, "a clock that is behind": {behind: time.Second}} {
			t.Run(name, func(t *testing.T) {
				for range 16 {
					now := time.Now()
					if v := evaluate(claimTwice(t, server, now, now.Add(-c.behind))); (len(v.faults) == 0) != c.right {
						t.Fatalf("found %q:\n%s", v.faults, text(v.ops))
					}
				}
			})
		}
	})
}

// claimTwice claims by two clocks, on an empty store each time.
func claimTwice(t *testing.T, server storetest.Server, clocks ...time.Time) *record {
	t.Helper()
	r := newRecord()
	for i, clock := range clocks {
		from := r.now()
		if err := server.Raw.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		r.lose("the store was emptied", value{}, from, r.now())
		store, err := redisstore.Open(server.URL, quiet)
		if err != nil {
			t.Fatal(err)
		}
		everybody, cfg := stillCluster(), orchestrator.DefaultConfig()
		cfg.StoreBudget, cfg.StoreClock = 20*time.Second, func() time.Time { return clock }
		orch := orchestrator.New(&watched{Store: store, record: r}, everybody, everybody, cfg, quiet)
		ctx := context.WithValue(t.Context(), askedKey{}, asked{who: fmt.Sprintf("signaling-%d", i), what: kindPlace, began: clocks[0]})
		if _, err := orch.Place(ctx, room, headroom.Room{}); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
	return r
}

// A real server is killed, and starts again empty.
func TestHistoriesOfAKilledStore(t *testing.T) {
	fleet := storetest.StartAlone(t)
	for seed := range uint64(5) {
		r := newRecord()
		var all sync.WaitGroup
		for i := range 5 {
			all.Go(func() { realCaller(t, fleet.Server, r, seed, i, 16) })
		}
		random := rand.New(rand.NewPCG(seed, 99))
		<-time.After(50*time.Millisecond + time.Duration(random.Int64N(int64(50*time.Millisecond))))
		from := r.now()
		fleet.Processes[0].Kill(t)
		fleet.Processes[0].Restart(t)
		back := r.now()
		r.lose("the store was killed and restarted empty", value{}, from, back)
		all.Wait()
		r.repeated(from, back)
		v := evaluate(r)
		if len(v.faults) > 0 {
			v.report(t, fmt.Sprintf("killed-%d", seed))
			return
		}
		t.Logf("seed %d: %d operations; calls that failed: %d", seed, len(v.ops), len(r.failed))
		if err := fleet.Raw.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// realCaller makes so many calls.
func realCaller(t *testing.T, server storetest.Server, r *record, seed uint64, i, calls int) {
	store, err := redisstore.Open(server.URL, quiet)
	if err != nil {
		t.Error(err)
		return
	}
	defer func() { _ = store.Close() }()
	everybody := stillCluster()
	cfg := orchestrator.DefaultConfig()
	cfg.StoreBudget = 20 * time.Second // Not about a busy machine.
	seen := &watched{Store: store, record: r}
	orch := orchestrator.New(seen, everybody, everybody, cfg, quiet)
	random := rand.New(rand.NewPCG(seed, uint64(i)))
	var last pin.Pin
	for n := range calls {
		// A claim's epoch is in milliseconds: the room must not move more often.
		<-time.After(8*time.Millisecond + time.Duration(random.Int64N(int64(8*time.Millisecond))))
		a := asked{who: fmt.Sprintf("signaling-%d", i), what: kindPlace}
		if !last.IsZero() && random.IntN(3) == 0 {
			a.what, a.about = []kind{kindRehome, kindAgain}[random.IntN(2)], last
		}
		a.began = time.Now()
		ctx := context.WithValue(t.Context(), askedKey{}, a)
		call := r.now()
		seen.silent = false
		var got pin.Pin
		switch a.what {
		case kindRehome:
			got, err = orch.Rehome(ctx, room, a.about, headroom.Room{})
		case kindAgain:
			got, err = orch.PlaceAgain(ctx, room, a.about, headroom.Room{})
		default:
			got, err = orch.Place(ctx, room, headroom.Room{})
		}
		if err != nil {
			r.refused(fmt.Sprintf("%s %d: %v", a.what, n, err))
			last = pin.Pin{}
			for store.Ping(t.Context()) != nil { // After an answer.
				<-time.After(10 * time.Millisecond)
			}
			continue
		}
		last = got
		if seen.silent { // From memory: its owner has to confirm it.
			r.refused("placed without the store")
			continue
		}
		r.add(input{kind: a.what, who: a.who, pin: a.about}, output{pin: got}, call, r.now())
	}
}
