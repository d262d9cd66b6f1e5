package orchestrator

import (
	"context"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/orchestrator/pinowner"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

// owner is an SFU node's side of placement, refreshing often, until the test ends.
func owner(t *testing.T, server storetest.Server, held ...pin.Holding) (*pinowner.Owner, *testkit.Rooms) {
	t.Helper()
	r := testkit.NewRooms(held...)
	own := pinowner.New(onRedis(t, server), r, pinowner.Config{RefreshEvery: 10 * time.Millisecond, ProlongEvery: time.Minute}, quiet)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- own.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v", err)
		}
	})
	return own, r
}

// A room's life on a real store: placed, its frozen owner declared dead, moved, the old owner fenced, the store
// emptied, the pin written again, found by the next join.
func TestOwnersAndSignalingNodesOverOneStore(t *testing.T) {
	storetest.OnEach(t, func(t *testing.T, server storetest.Server) {
		const room ring.RoomID = "class" // a, then b, then c clockwise
		signaling := New(onRedis(t, server), fixed(viewOf(sfu("a", 1), sfu("b", 1))), &addresses{}, patient(), quiet)
		first, err := signaling.Place(t.Context(), room, headroom.Room{})
		if err != nil || first.Node != "a" {
			t.Fatalf("Place = %v, %v", first, err)
		}
		_, sleeper := owner(t, server, pin.Holding{Room: room, Pin: first})
		second, err := signaling.Rehome(t.Context(), room, first, headroom.Room{})
		if err != nil || second.Node != "b" || second.Fence.Epoch != first.Fence.Epoch+1 {
			t.Fatalf("Rehome = %v, %v", second, err)
		}
		testkit.Eventually(t, "the old owner to be fenced", func() bool { return len(sleeper.Fenced()) > 0 })
		if told := sleeper.Fenced(); len(told) != 1 || told[0] != (pin.Holding{Room: room, Pin: second}) {
			t.Errorf("the old owner was told %v, want %v once", told, second)
		}
		own, awake := owner(t, server, pin.Holding{Room: room, Pin: second})
		if err := own.Confirm(t.Context(), room, second); err != nil {
			t.Errorf("the new owner cannot confirm its pin: %v", err)
		}
		if err := server.Raw.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		testkit.Eventually(t, "the owner to write its pin again", func() bool { return server.Raw.Exists(t.Context(), keyOf(room)).Val() == 1 })
		newcomer := New(onRedis(t, server), fixed(viewOf(sfu("a", 1), sfu("b", 1))), &addresses{}, patient(), quiet)
		if p, err := newcomer.Place(t.Context(), room, headroom.Room{}); p != second || err != nil {
			t.Errorf("after the store lost everything a join got %v, %v, want %v, epoch kept", p, err, second)
		}
		if len(awake.Fenced()) != 0 {
			t.Errorf("the new owner was fenced by %v", awake.Fenced())
		}
	})
}
