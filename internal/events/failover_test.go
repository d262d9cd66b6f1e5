package events

import (
	"slices"
	"testing"
	"time"
)

func TestMergerTellsAFailoverInOneLine(t *testing.T) {
	start := time.UnixMilli(1_000_000)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	dead := "its process is gone: dead (proof: stream broken, control refused, media refused)"
	var m Merger
	var got []string
	hear := func(ms int, e Event) {
		e.At = at(ms)
		for _, line := range m.Add(e, at(ms)) {
			got = append(got, line.Text)
		}
	}
	hear(0, Event{Kind: RoomRehomed, Room: "hall", From: "sfu-2", To: "sfu-1", Cause: dead, About: "7"})
	hear(1, Event{Kind: RoomRehomed, Room: "mute", From: "sfu-2", To: "sfu-1", Cause: dead, About: "8"})
	hear(2, Event{Kind: NodeDown, Node: "sfu-2", Cause: "proof: stream broken"})
	hear(200, Event{Kind: RoomBack, Room: "hall", Node: "signaling-1", Peers: 2, Back: 1, WorstGapMillis: 140, About: "7"})
	hear(900, Event{Kind: RoomBack, Room: "hall", Node: "signaling-2", Peers: 1, Back: 1, WorstGapMillis: 90, About: "7"})
	hear(950, Event{Kind: RoomBack, Room: "hall", Node: "signaling-2", Peers: 1, Back: 1, WorstGapMillis: 90, About: "6"})
	hear(1300, Event{Kind: RoomMoved, Room: "blue", From: "sfu-1", To: "sfu-3", Cause: "an operator moved it"})
	for _, line := range m.Due(at(8001)) {
		got = append(got, line.Text)
	}
	want := []string{
		"sfu-2 died (proof: stream broken)",
		"hall: 1 of 1 back at signaling-2, worst gap 0.09 s",
		"hall: sfu-2 died (stream broken, ports refused) -> sfu-1, 2 of 3 back, worst 0.14 s",
		"blue: sfu-1 -> sfu-3 (an operator moved it)",
		"mute: sfu-2 died (stream broken, ports refused) -> sfu-1",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant\n%q", got, want)
	}
	hear(9000, Event{Kind: RoomRehomed, Room: "hall", From: "sfu-1", To: "sfu-3", Cause: "a newer process has its name", About: "9"})
	rest := m.Flush()
	if len(rest) != 1 || rest[0].Text != "hall: sfu-1 -> sfu-3 (a newer process has its name)" || !rest[0].At.Equal(at(9000)) || !rest[0].Bad || m.Flush() != nil {
		t.Errorf("%+v", rest)
	}
}

// TestMergerIsBounded also when a cluster of many rooms loses everything at once.
func TestMergerIsBounded(t *testing.T) {
	var m Merger
	for range mergeAtMost {
		m.Add(Event{Kind: RoomRehomed, Room: "hall", From: "sfu-2", To: "sfu-1"}, time.UnixMilli(0))
	}
	if lines := m.Add(Event{Kind: RoomRehomed, Room: "hall", From: "sfu-2", To: "sfu-1"}, time.UnixMilli(0)); len(lines) != 1 {
		t.Errorf("%+v", lines)
	}
}
