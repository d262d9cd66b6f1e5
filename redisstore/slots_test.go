package redisstore

import (
	"fmt"
	"testing"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// A slot of a dead master is given to a living one by hand, which lacks the slot's pins: its claims there are in no
// incarnation of before, for a client that learns of the slot and for one that does not, and owners report the later one.
func TestASlotWithoutItsPinsBeginsAnIncarnation(t *testing.T) {
	t.Parallel() // most of it is waiting
	fleet := storetest.StartCluster(t)
	owner, client, stale := open(t, patient(fleet.Server)), open(t, patient(fleet.Server)), open(t, patient(fleet.Server))
	before := present(t, owner)
	if present(t, client) != before || present(t, stale) != before {
		t.Fatal("three clients see several incarnations of one store")
	}
	ended := make(chan error, 1)
	go func() { ended <- client.Run(t.Context()) }()
	t.Cleanup(func() { <-ended })
	dead, living := fleet.Processes[2], storetest.Fleet{Server: fleet.Server, Processes: fleet.Processes[:2]}
	room := ring.RoomID("room-0")
	for i := 1; fleet.MasterOf(t, pinKey(room)) != dead; i++ {
		room = ring.RoomID(fmt.Sprintf("room-%d", i))
	}
	p, next := storetest.At("a", 1000, 1), storetest.At("b", 1001, 1)
	claim := func(store *Store) (in pin.Incarnation) {
		testkit.Eventually(t, "claim", func() bool {
			var err error
			_, in, err = store.Claim(t.Context(), room, p, "")
			return err == nil
		})
		return in
	}
	dead.Kill(t)
	living.MoveSlot(t, slotOf(string(room)), living.Processes[1]) // its marker stays where it is
	claim(stale)
	if in := claim(stale); in != 0 {
		t.Errorf("a claim in a slot that the client does not know of is in incarnation %x, of before %x", in, before.All())
	}
	if _, in, err := stale.Swap(t.Context(), room, p, next, ""); in != 0 || err != nil {
		t.Errorf("a swap there is in incarnation %x, %v", in, err)
	}
	if found, err := stale.Roster(t.Context(), room); found.In != 0 || found.Pin != next || err != nil {
		t.Errorf("the roster there is %+v, %v", found, err)
	}
	var in pin.Incarnation
	testkit.Eventually(t, "claim in an incarnation", func() bool { in = claim(client); return in != 0 })
	if before.Has(in) {
		t.Errorf("a claim without the dead master's pins is in incarnation %x of before", in)
	}
	testkit.Eventually(t, "owners to report the claim's incarnation", func() bool {
		all, _ := owner.Incarnations(t.Context()) // the dead master has other slots
		return pin.IncarnationsOf(all).Has(in)
	})
}
