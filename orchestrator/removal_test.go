package orchestrator

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// The sweep removes a dead node's pin while two people join the room and a slow signaling node re-homes it. All end
// on one higher pin.
func TestRemovalRacesJoinersAndALateReHomer(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		dead := pinAt("dead", 1, uint64(time.Now().Add(-time.Minute).UnixMilli()), 1)
		knows := viewOf(sfu("a", 1), sfu("b", 1), sfu("c", 1))
		knows.Gone[dead.Boot] = cluster.DepartureDead
		nobody := &addresses{boots: map[string]pin.BootID{dead.Control: ""}}
		for _, id := range []string{"a", "b", "c"} {
			nobody.boots[id+".test:7000"] = bootOf(id, 1)
		}
		sweeper := onRedis(t, server)
		var signalingNodes []*Orchestrator
		for _, view := range []*cluster.View{knows, viewOf(sfu("b", 1), sfu("c", 1)), viewOf(sfu("c", 1), sfu("a", 1))} {
			signalingNodes = append(signalingNodes, New(onRedis(t, server), fixed(view), nobody, patient(), quiet))
		}
		removed := 0
		for i := range 150 {
			room := ring.RoomID(fmt.Sprintf("race-%d", i))
			if _, _, err := sweeper.Claim(t.Context(), room, dead, ""); err != nil {
				t.Fatal(err)
			}
			pins, errs := make([]pin.Pin, 3), make([]error, 3)
			var all sync.WaitGroup
			all.Go(func() {
				gone, err := sweeper.Remove(t.Context(), room, dead)
				if err != nil {
					t.Error(err)
				}
				if gone {
					removed++
				}
			})
			all.Go(func() { pins[0], errs[0] = signalingNodes[0].Place(t.Context(), room, headroom.Room{}) })
			all.Go(func() { pins[1], errs[1] = signalingNodes[1].Place(t.Context(), room, headroom.Room{}) })
			all.Go(func() { pins[2], errs[2] = signalingNodes[2].Rehome(t.Context(), room, dead, headroom.Room{}) })
			all.Wait()
			for k, p := range pins {
				if errs[k] != nil || p != pins[0] || p.Boot == dead.Boot || !dead.Fence.Less(p.Fence) {
					t.Fatalf("room %d: signaling node %d got %v, %v; node 0 got %v", i, k, p, errs[k], pins[0])
				}
			}
		}
		t.Logf("%d of 150 pins were removed before anybody moved them", removed)
	})
}
