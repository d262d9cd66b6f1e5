package failover

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// fixedView is a Membership that never changes.
type fixedView struct {
	Membership

	view *cluster.View
}

func (v fixedView) View() *cluster.View { return v.view }

// refusing are nodes whose addresses all refuse.
type refusing struct{ Nodes }

func (refusing) HelloAt(context.Context, string) (control.Hello, error) {
	return control.Hello{}, control.ErrRefused
}

// holdNothing is a Prober of nodes that have no room open.
type holdNothing struct{ orchestrator.Prober }

func (holdNothing) Holds(context.Context, string, ring.RoomID) (pin.Pin, error) {
	return pin.Pin{}, nil
}

// A node dies with a hundred pins of rooms that have ended. The sweep deletes the pins; it takes no egress of the survivors, which
// are at a third of their ceiling and go on to take new rooms.
func TestSweptRoomsTakeNoHeadroom(t *testing.T) {
	view := &cluster.View{Settled: true, Nodes: map[ring.NodeID]cluster.Node{}, Gone: map[pin.BootID]cluster.Departure{}}
	var names []ring.NodeID
	for i := range 3 {
		id := ring.NodeID(fmt.Sprintf("sfu-%d", i+1))
		names = append(names, id)
		view.Nodes[id] = cluster.Node{
			ID: id, Boot: pin.BootID(fmt.Sprintf("%013d-%s", 1, id)), Role: cluster.RoleSFU, Control: string(id) + ".test:7000",
			Load: cluster.Load{
				Seq: 1, EgressBitsPerSecond: 272e6, EgressPacketsPerSecond: 34_000, CeilingBitsPerSecond: 800e6, CeilingPacketsPerSecond: 100_000,
			},
		}
	}
	view.Ring = ring.New(names)
	dead := storetest.At("sfu-4", uint64(time.Now().Add(-time.Hour/2).UnixMilli()), 1)
	view.Gone[dead.Boot] = cluster.DepartureDead

	log := slog.New(slog.DiscardHandler)
	store, err := redisstore.Open(storetest.Start(t, "miniredis").URL, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	config := orchestrator.DefaultConfig()
	config.StoreBudget = 30 * time.Second
	orch := orchestrator.New(store, fixedView{view: view}, holdNothing{}, config, log)
	for i := range 100 {
		dead.Fence.Nonce++
		if _, _, err := store.Claim(t.Context(), ring.RoomID(fmt.Sprintf("ended-%d", i)), dead, ""); err != nil {
			t.Fatal(err)
		}
	}
	signaling := DefaultConfig()
	signaling.Self = "signaling-1"
	s := &sweeper{Failover: New(signaling, fixedView{view: view}, nil, orch, store, refusing{}, log), suspects: map[pin.BootID]int{}}
	for range 2 {
		s.scan(t.Context())
	}
	refused := 0
	for i := range 40 {
		if _, err := orch.Place(t.Context(), ring.RoomID(fmt.Sprintf("new-%d", i)), headroom.Room{}); err != nil {
			refused++
			t.Log(err)
		}
	}
	if refused > 0 {
		t.Errorf("%d of 40 new rooms were refused", refused)
	}
	left := 0
	if err := store.AllPins(t.Context(), func(h pin.Holding) error {
		if h.Pin.Boot == dead.Boot {
			left++
		}
		return nil
	}); err != nil || left > 0 {
		t.Errorf("%d pins of the dead node are left, %v", left, err)
	}
}
