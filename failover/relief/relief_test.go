package relief

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/ring"
)

const mega = 1_000_000

func egress(megabits int) headroom.Egress {
	return headroom.Egress{BitsPerSecond: uint64(megabits) * mega, PacketsPerSecond: uint64(megabits) * 100}
}

func node(id string, load int) Node {
	return Node{ID: ring.NodeID(id), Open: true, Load: egress(load), Ceiling: egress(1000)}
}

func rooms(on string, sizes ...int) (out []Room) {
	for i, size := range sizes {
		out = append(out, Room{ID: ring.RoomID(fmt.Sprintf("%s-%d", on, i)), On: ring.NodeID(on), Sends: egress(size)})
	}
	return out
}

// after returns the moves once the node has been hot for long enough.
func after(long time.Duration, nodes []Node, rooms []Room, config Config) []Move {
	r, now := New(config), time.Unix(0, 0)
	r.Next(now, nodes, rooms)
	return r.Next(now.Add(long), nodes, rooms)
}

func TestChoice(t *testing.T) {
	all := DefaultConfig()
	all.AtOnce = 100
	hot := rooms("a", 400, 300, 160, 40, 20)
	spread := rooms("a", 400, 100)
	spread[0].Spread = true
	prepared, unprepared := rooms("a", 160), rooms("a", 160)
	prepared[0].Standby, unprepared[0].Standby = "b", "c"
	draining, unknown := node("b", 100), node("b", 100)
	draining.Open, unknown.Ceiling = false, headroom.Egress{}
	limited, full := node("a", 800), node("c", 100)
	limited.Limited, full.Limited = true, true
	for name, c := range map[string]struct {
		nodes []Node
		rooms []Room
		long  time.Duration
		want  string
	}{
		"the smallest that suffices":     {[]Node{node("a", 900), node("b", 300)}, hot, all.HotFor, "a-2>b "},
		"a spread room stays":            {[]Node{node("a", 900), node("b", 300)}, spread, all.HotFor, "a-1>b "},
		"not yet":                        {[]Node{node("a", 900), node("b", 300)}, hot, all.HotFor - 1, ""},
		"the coolest":                    {[]Node{node("a", 900), node("b", 300), node("c", 200)}, hot, all.HotFor, "a-2>c "},
		"the standby":                    {[]Node{node("a", 900), node("b", 300), node("c", 200)}, prepared, all.HotFor, "a-0>b "},
		"the standby is too warm":        {[]Node{node("a", 900), node("b", 300), node("c", 700)}, unprepared, all.HotFor, "a-0>b "},
		"two, none alone":                {[]Node{node("a", 900), node("b", 300)}, rooms("a", 100, 90, 60, 40), all.HotFor, "a-0>b a-2>b "},
		"what fits helps":                {[]Node{node("a", 900), node("b", 700)}, hot, all.HotFor, "a-3>b "},
		"nobody would be cooler":         {[]Node{node("a", 900), node("b", 850)}, hot, all.HotFor, ""},
		"one room alone is never passed": {[]Node{node("a", 900), node("b", 0)}, rooms("a", 900), all.HotFor, ""},
		"the target drains":              {[]Node{node("a", 900), draining}, hot, all.HotFor, ""},
		"the target's ceiling is new":    {[]Node{node("a", 900), unknown}, hot, all.HotFor, ""},
		"the source drains":              {[]Node{draining, node("c", 0)}, rooms("b", 100), time.Hour, ""},
		"nothing is measured":            {[]Node{node("a", 900), node("b", 0)}, rooms("a", 0, 0), all.HotFor, ""},
		"a node has come":                {[]Node{node("a", 600), node("b", 0)}, rooms("a", 200, 150, 100), all.UnevenFor, "a-0>b "},
		"it holds pictures back":         {[]Node{limited, node("b", 300)}, hot, all.HotFor, "a-2>b "},
		"the target holds pictures back": {[]Node{node("a", 900), full}, hot, all.HotFor, ""},
		"even enough":                    {[]Node{node("a", 600), node("b", 400)}, rooms("a", 200, 150, 100), time.Hour, ""},
		"nearly idle":                    {[]Node{node("a", 300), node("b", 0)}, rooms("a", 100, 100, 100), time.Hour, ""},
	} {
		got := ""
		for _, m := range after(c.long, c.nodes, c.rooms, all) {
			got += fmt.Sprintf("%s>%s ", m.Room, m.To)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestAShortPeakMovesNothing(t *testing.T) {
	r, now := New(DefaultConfig()), time.Unix(0, 0)
	for second := range 600 {
		load := 950
		if second%9 == 8 {
			load = 800
		}
		if got := r.Next(now.Add(time.Duration(second)*time.Second), []Node{node("a", load), node("b", 700)}, rooms("a", 20, 20)); len(got) > 0 {
			t.Fatalf("after %d s: %v", second, got)
		}
	}
}

// A node that becomes the reliever already knows for how long nodes have been hot.
func TestHeatIsLearntWithoutRooms(t *testing.T) {
	r, now := New(DefaultConfig()), time.Unix(0, 0)
	nodes := []Node{node("a", 990), node("b", 100)}
	r.Next(now, nodes, nil)
	if got := r.Next(now.Add(time.Hour), nodes, rooms("a", 200)); len(got) != 1 {
		t.Errorf("%v, want the room of a node that was hot for an hour", got)
	}
}

// The fewest: no smaller set of rooms brings the node to its line, where there is a place for all.
func TestTheSmallestSet(t *testing.T) {
	config := DefaultConfig()
	config.AtOnce = 100
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(1, 90), 1, 12).Draw(t, "rooms")
		nodes := []Node{node("a", rapid.IntRange(860, 1200).Draw(t, "load"))}
		for i := range 20 {
			nodes = append(nodes, node(fmt.Sprintf("b%d", i), 0))
		}
		got := after(config.HotFor, nodes, rooms("a", sizes...), config)
		// Any k rooms send at most what the k largest do.
		need := int(nodes[0].Load.BitsPerSecond/mega) - 750
		sent := 0
		for _, m := range got {
			sent += int(m.Sends.BitsPerSecond / mega)
		}
		least, most := 0, 0
		for _, size := range sorted(sizes) {
			if most < need {
				least, most = least+1, most+size
			}
		}
		if len(got) != least || sent < min(need, most) {
			t.Fatalf("%d rooms with %d Mbit/s move, of %v; %d suffice for %d", len(got), sent, sizes, least, need)
		}
	})
}

// A move counts at both nodes while it runs.
func TestStaleReportsMoveNothingMore(t *testing.T) {
	config := DefaultConfig()
	r, now := New(config), time.Unix(0, 0)
	nodes, all := []Node{node("a", 900), node("b", 300)}, rooms("a", 160, 160, 160)
	r.Next(now, nodes, all)
	now = now.Add(config.HotFor)
	got := r.Next(now, nodes, all)
	if len(got) != 1 {
		t.Fatalf("want one move: %v", got)
	}
	for range 20 {
		now = now.Add(time.Second)
		if more := r.Next(now, nodes, all); len(more) > 0 {
			t.Fatalf("under way: %v", more)
		}
	}
}

func TestAMoveCountsUntilItIsReported(t *testing.T) {
	config := DefaultConfig()
	config.AtOnce = 1
	nodes, all := []Node{node("a", 1000), node("b", 0)}, rooms("a", 150, 140, 100, 90)
	r, now := New(config), time.Unix(0, 0)
	r.Next(now, nodes, all)
	now = now.Add(config.HotFor)
	if got := r.Next(now, nodes, all); len(got) != 1 || got[0].Room != "a-0" {
		t.Fatalf("want the largest room: %v", got)
	}
	r.Ended("a-0", now)
	if got := r.Next(now.Add(config.Reported-1), nodes, all); len(got) != 1 || got[0].Room != "a-2" {
		t.Errorf("want the smallest that suffices after the first: %v", got)
	}
}
