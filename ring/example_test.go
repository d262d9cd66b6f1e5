package ring_test

import (
	"fmt"

	"github.com/holdfast-rtc/holdfast/ring"
)

// Every process that knows the names of the nodes computes the same owner of a room.
func ExampleRing_Owner() {
	nodes := ring.New([]ring.NodeID{"sfu-1", "sfu-2", "sfu-3"})
	for _, room := range []ring.RoomID{"standup", "board", "kitchen", "retro", "demo", "lecture"} {
		owner, _ := nodes.Owner(room)
		fmt.Println(room, owner)
	}
	// Output:
	// standup sfu-3
	// board sfu-2
	// kitchen sfu-1
	// retro sfu-1
	// demo sfu-3
	// lecture sfu-3
}

// A room whose owner cannot take it goes to the next node of its own order, so that the rooms of a dead node spread over all others.
func ExampleRing_Successors() {
	nodes := ring.New([]ring.NodeID{"sfu-1", "sfu-2", "sfu-3"})
	for node := range nodes.Successors("standup") {
		fmt.Println(node)
	}
	// Output:
	// sfu-3
	// sfu-2
	// sfu-1
}

// A new node takes about its share of the rooms, and no room moves between two old nodes.
func ExampleMoves() {
	var rooms []ring.RoomID
	for i := range 1000 {
		rooms = append(rooms, ring.RoomID(fmt.Sprintf("room-%d", i)))
	}
	before := ring.New([]ring.NodeID{"sfu-1", "sfu-2", "sfu-3"})
	after := ring.New([]ring.NodeID{"sfu-1", "sfu-2", "sfu-3", "sfu-4"})
	to := map[ring.NodeID]int{}
	for _, move := range ring.Moves(before, after, rooms) {
		to[move.To]++
	}
	fmt.Println(to)
	// Output:
	// map[sfu-4:223]
}
