package orchestrator

import (
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/orchestrator/pinowner"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// While one master of a Cluster is silent, an owner is told of moves on the others, stays synced with them, and writes their
// missing pins again.
func TestASilentMasterDoesNotHideMovesOnTheOthers(t *testing.T) {
	t.Parallel() // most of it is waiting
	fleet := storetest.StartCluster(t)
	store := onRedis(t, fleet.Server)
	silent := fleet.Processes[0]
	var held []pin.Holding
	var healthy []pin.Holding
	for i := range 30 {
		h := pin.Holding{Room: ring.RoomID(fmt.Sprintf("room-%d", i)), Pin: pinAt("a", 1, 5000, uint64(i+1))}
		if held = append(held, h); fleet.MasterOf(t, keyOf(h.Room)) != silent {
			healthy = append(healthy, h)
		}
	}
	open := testkit.NewRooms(held...)
	owner := pinowner.New(store, open, pinowner.DefaultConfig(), quiet)
	testkit.Eventually(t, "the first refresh", func() bool { return owner.Refresh(t.Context()) == nil })

	moved, lost, higher := healthy[0], healthy[1], pinAt("b", 1, 6000, 1)
	fleet.Raw.Set(t.Context(), keyOf(moved.Room), higher.Encode(), 0)
	fleet.Raw.Del(t.Context(), keyOf(lost.Room))
	silent.Freeze(t)
	t.Cleanup(func() { silent.Thaw(t) })
	for range 2 {
		if err := owner.Refresh(t.Context()); err == nil {
			t.Error("a refresh without one master says that all is well")
		}
	}
	if told := open.Fenced(); !slices.Equal(told, []pin.Holding{{Room: moved.Room, Pin: higher}}) {
		t.Errorf("the owner was told %v", told)
	}
	if stands := fleet.Raw.Get(t.Context(), keyOf(lost.Room)).Val(); stands != lost.Pin.Encode() {
		t.Errorf("%q stands for a room whose pin was lost", stands)
	}
}
