package sfu

import (
	"slices"
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

// TestASpreadRoomIsTold: operators learn which node carries people of the room, and which one took it over.
func TestASpreadRoomIsTold(t *testing.T) {
	recorder, facts := testkit.Recorded(t)
	s := newSpreadRoom(t, 2, func(c *Config) { c.Events = recorder })
	owner, kept, gathered := s.node.cfg.Node, s.branches[0].node.cfg.Node, s.branches[1].node.cfg.Node
	s.attach("room", "host", 1, knowsPlaces)
	s.spread()
	if _, err := s.client.Spread(t.Context(), &control.SpreadRequest{Room: "room", Place: s.branches[1].node.roomPlace(), Gather: true}); err != nil {
		t.Fatal(err)
	}
	higher := s.branches[0].pin(s.epoch + 1)
	if _, err := s.client.Outrank(t.Context(), &control.OutrankRequest{Room: "room", Pin: control.PinProto(higher), Live: true}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []events.Event{
		{Kind: events.RoomSpread, Room: "room", Node: owner, To: kept},
		{Kind: events.RoomSpread, Room: "room", Node: owner, To: gathered},
		{Kind: events.RoomGathered, Room: "room", Node: owner, From: gathered},
		{Kind: events.BranchPromoted, Room: "room", Node: kept, From: owner},
	} {
		eventually(t, want.Sentence(), func() bool {
			return slices.ContainsFunc(facts(), func(e events.Event) bool {
				e.ID, e.At, e.Cause, e.About, e.Version, e.Role = "", want.At, "", "", "", ""
				return e == want
			})
		})
	}
}
