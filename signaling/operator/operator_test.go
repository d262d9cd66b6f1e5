package operator

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/ring"
)

func viewOf(loads map[ring.NodeID]uint64) *cluster.View {
	v := &cluster.View{Nodes: map[ring.NodeID]cluster.Node{}}
	for id, bits := range loads {
		v.Nodes[id] = cluster.Node{ID: id, Load: cluster.Load{EgressBitsPerSecond: bits, CeilingBitsPerSecond: 1000, EgressPacketsPerSecond: 1, CeilingPacketsPerSecond: 100}}
	}
	return v
}

func TestHistoryKeepsTheLastSamplesOfWhoIsThere(t *testing.T) {
	var h History
	h.sample(nil)
	h.sample(viewOf(map[ring.NodeID]uint64{"a": 500, "b": 0}))
	h.sample(viewOf(map[ring.NodeID]uint64{"a": 1500}))
	got := h.Of([]ring.NodeID{"a", "b", "c"})
	if !slices.Equal(got["a"], []int16{50, 150}) || !slices.Equal(got["b"], []int16{1, unknown}) || len(got) != 2 {
		t.Errorf("%v", got)
	}
	for range Samples {
		h.sample(viewOf(map[ring.NodeID]uint64{"a": 10}))
	}
	got = h.Of([]ring.NodeID{"a", "b"})
	if len(got["a"]) != Samples || got["a"][0] != 1 || len(got) != 1 {
		t.Errorf("after %d more samples: %v", Samples, got)
	}
}

func TestRoomsAreSearchedSortedAndPaged(t *testing.T) {
	var asked int
	ask := func(context.Context) ([]Room, []ring.NodeID) {
		asked++
		var rooms []Room
		for i := range 1000 {
			rooms = append(rooms, Room{Room: ring.RoomID(fmt.Sprintf("Room-%04d", i)), Node: ring.NodeID(fmt.Sprintf("sfu-%d", i%7)), People: uint32(i % 10)})
		}
		return rooms, []ring.NodeID{"sfu-9"}
	}
	var r Rooms
	names := func(q Question) (found []ring.RoomID, total int) {
		page := r.Page(t.Context(), q, ask)
		for _, room := range page.Rooms {
			found = append(found, room.Room)
		}
		if page.Total != 1000 || !slices.Equal(page.Unreachable, []ring.NodeID{"sfu-9"}) {
			t.Errorf("%+v: %d rooms in all, %v unreachable", q, page.Total, page.Unreachable)
		}
		return found, page.Found
	}
	for _, c := range []struct {
		question Question
		want     []ring.RoomID
		found    int
	}{
		{Question{By: ByRoom, Ascending: true, Limit: 2}, []ring.RoomID{"Room-0000", "Room-0001"}, 1000},
		{Question{By: ByRoom, Limit: 1}, []ring.RoomID{"Room-0999"}, 1000},
		{Question{By: ByPeople, Limit: 1}, []ring.RoomID{"Room-0999"}, 1000},
		{Question{By: ByRoom, Ascending: true, Offset: 998, Limit: 5}, []ring.RoomID{"Room-0998", "Room-0999"}, 1000},
		{Question{By: ByRoom, Ascending: true, Search: "ROOM-012", Offset: 1, Limit: 2}, []ring.RoomID{"Room-0121", "Room-0122"}, 10},
		{Question{By: ByRoom, Ascending: true, Search: "sfu-3", Limit: 1}, []ring.RoomID{"Room-0003"}, 143},
	} {
		got, found := names(c.question)
		if !slices.Equal(got, c.want) || found != c.found {
			t.Errorf("%+v: %v of %d, want %v of %d", c.question, got, found, c.want, c.found)
		}
	}
	if asked != 1 {
		t.Errorf("the nodes were asked %d times within a moment", asked)
	}
}

func TestARoomOfAnOlderNodeIsCounted(t *testing.T) {
	got := RoomOf("sfu-1", &control.HeldRoom{Room: "hall", Peers: []*control.HeldPeer{{Connected: true}, {}}})
	if got.People != 2 || got.Connected != 1 {
		t.Errorf("%+v", got)
	}
}
