package failover

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/backoff"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// halfStore is a store of which the master with the rooms "silent-*" does not answer, and a signaling node with people in all rooms.
type halfStore struct {
	Membership
	Rooms
	Nodes

	view  *cluster.View
	mu    sync.Mutex // guards rooms
	rooms map[ring.RoomID]LocalRoom
}

const halfStoreBoot = pin.BootID("old")

func newHalfStore(view *cluster.View) *halfStore {
	s := &halfStore{view: view, rooms: map[ring.RoomID]LocalRoom{}}
	add := func(room ring.RoomID, peers int) {
		s.rooms[room] = LocalRoom{Room: room, Peers: peers, Pin: pin.Pin{Fence: pin.Fence{Epoch: 1}, Node: "m1", Boot: halfStoreBoot}}
	}
	for i := range 200 {
		add(ring.RoomID(fmt.Sprintf("silent-%d", i)), 3)
	}
	add("healthy", 2)
	return s
}

func (s *halfStore) View() *cluster.View { return s.view }

func (s *halfStore) PinnedTo(boot pin.BootID) []LocalRoom {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Collect(maps.Values(s.rooms)), func(r LocalRoom) bool { return r.Pin.Boot != boot })
}

func (s *halfStore) Plan(ring.RoomID, pin.Pin, headroom.Room) {}

func (s *halfStore) Rehome(ctx context.Context, room ring.RoomID, from pin.Pin, _ headroom.Room) (pin.Pin, error) {
	if strings.HasPrefix(string(room), "silent-") {
		backoff.Sleep(ctx, 300*time.Millisecond)
		return pin.Pin{}, errDown
	}
	backoff.Sleep(ctx, time.Millisecond)
	return pin.Pin{Fence: pin.Fence{Epoch: from.Fence.Epoch + 1}, Node: "m2", Boot: "new"}, nil
}

func (s *halfStore) Move(ctx context.Context, room ring.RoomID, from pin.Pin, _ ring.NodeID, expect headroom.Room, _ string) (pin.Pin, error) {
	return s.Rehome(ctx, room, from, expect)
}

func (s *halfStore) Moved(_ context.Context, room ring.RoomID, to pin.Pin) {
	s.mu.Lock()
	defer s.mu.Unlock()
	local := s.rooms[room]
	local.Pin = to
	s.rooms[room] = local
}

func (s *halfStore) MovedLive(ctx context.Context, room ring.RoomID, to pin.Pin) {
	s.Moved(ctx, room, to)
}

func (s *halfStore) Settled(ring.RoomID, pin.Fence) bool { return true }
func (s *halfStore) Stays(ring.RoomID, string)           {}
func (s *halfStore) Delayed(ring.RoomID, error)          {}

func (s *halfStore) Outrank(context.Context, string, ring.RoomID, pin.Pin, bool) (bool, error) {
	return true, nil
}

// Rooms of a silent master take the turns of a healthy one's only once, however many they are.
func TestRoomsOfASilentMasterStarveNobody(t *testing.T) {
	for _, test := range []struct {
		name   string
		view   *cluster.View
		rounds func(f *Failover, ctx context.Context, owned *sync.WaitGroup, view *cluster.View)
		within time.Duration
	}{
		{"death", &cluster.View{Gone: map[pin.BootID]cluster.Departure{halfStoreBoot: cluster.DepartureDead}}, (*Failover).moveLost, 5 * time.Second},
		// Four rooms at once.
		{"drain", &cluster.View{Nodes: map[ring.NodeID]cluster.Node{"m1": {ID: "m1", Boot: halfStoreBoot, Draining: true}}}, (*Failover).moveDraining, 20 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newHalfStore(test.view)
				f := New(DefaultConfig(), s, s, s, nil, s, slog.New(slog.DiscardHandler))
				ctx, cancel := context.WithCancel(t.Context())
				var owned sync.WaitGroup
				defer owned.Wait()
				defer cancel()
				for began := time.Now(); s.rooms["healthy"].Pin.Boot == halfStoreBoot; synctest.Wait() {
					if time.Since(began) > test.within {
						t.Fatalf("the healthy room is not moved within %v", test.within)
					}
					test.rounds(f, ctx, &owned, test.view)
					time.Sleep(50 * time.Millisecond) //nolint:forbidigo // the bubble's clock
				}
			})
		})
	}
}
