package events

import (
	"slices"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/tty"
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
	hear(1300, Event{Kind: RoomMoved, Room: "blue", From: "sfu-1", To: "sfu-3", Cause: "an operator moved it", About: "5"})
	hear(1400, Event{Kind: RoomBack, Room: "blue", Node: "signaling-1", Peers: 2, Back: 2, WorstGapMillis: 70, About: "5"})
	for _, line := range m.Due(at(8001)) {
		got = append(got, line.Text)
	}
	want := []string{
		"sfu-2 died (proof: stream broken)",
		"hall: sfu-2 died (stream broken, ports refused) -> sfu-1, 2 of 3 back, worst 0.14 s",
		"hall: 1 of 1 back at signaling-2, worst gap 0.09 s",
		"mute: sfu-2 died (stream broken, ports refused) -> sfu-1",
		"blue: sfu-1 -> sfu-3 (an operator moved it), 2 of 2 back, worst 0.07 s",
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

// TestMergerTakesAReportThatComesFirst, since another signaling node may write the failover later.
func TestMergerTakesAReportThatComesFirst(t *testing.T) {
	start := time.UnixMilli(1_000_000)
	var m Merger
	for _, e := range []Event{
		{Kind: RoomBack, Room: "hall", Node: "signaling-1", Peers: 1, Back: 1, WorstGapMillis: 60, About: "7"},
		{Kind: RoomBack, Room: "hall", Node: "signaling-1", Peers: 1, Back: 1, WorstGapMillis: 60, About: "8"},
		{Kind: RoomRehomed, Room: "hall", From: "sfu-2", To: "sfu-1", Cause: "its process is gone: dead", About: "7"},
		{Kind: RoomBack, Room: "hall", Node: "signaling-2", Peers: 1, Back: 1, WorstGapMillis: 80, About: "7"},
	} {
		if lines := m.Add(e, start); lines != nil {
			t.Errorf("told at once: %+v", lines)
		}
	}
	var got []string
	for _, line := range m.Due(start.Add(mergeReports)) {
		got = append(got, line.Text)
	}
	if want := []string{"hall: 1 of 1 back at signaling-1, worst gap 0.06 s", "hall: sfu-2 died -> sfu-1, 2 of 2 back, worst 0.08 s"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestMergerSaysThatANodeWasKilled whether the order is recorded before or after the failover, and not long after.
func TestMergerSaysThatANodeWasKilled(t *testing.T) {
	start := time.UnixMilli(1_000_000)
	order := Event{Kind: NodeKilled, Node: "sfu-2", At: start, By: "ada"}
	moved := func(after time.Duration) Event {
		return Event{Kind: RoomRehomed, Room: "hall", From: "sfu-2", To: "sfu-1", Cause: "its process is gone: dead (proof: stream broken)", At: start.Add(after)}
	}
	const killed, died = "hall: sfu-2 died (killed: stream broken) -> sfu-1", "hall: sfu-2 died (stream broken) -> sfu-1"
	for want, all := range map[string][]Event{
		killed: {order, moved(20 * time.Millisecond), moved(20 * time.Millisecond), order},
		died:   {order, moved(killedFor)},
	} {
		var m Merger
		for _, e := range all {
			m.Add(e, start)
		}
		for _, line := range m.Flush() {
			if line.Text != want || line.failover == nil || line.failover.Sentence() != want {
				t.Errorf("%+v, want %q", line, want)
			}
		}
	}
	missing := Failover{Room: "hall", From: "sfu-2", To: "sfu-1", Cause: "its process is gone: dead", Peers: 3, Back: 2, WorstGapMillis: 140}
	if got, want := (Line{failover: &missing}).Show(tty.Paint(true)), "\x1b[1mhall\x1b[0m: \x1b[31msfu-2 died\x1b[0m -> \x1b[32msfu-1\x1b[0m, \x1b[33m2 of 3 back\x1b[0m, worst 0.14 s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := (Line{failover: &Failover{Room: "hall", From: "sfu-2", To: "sfu-1", Cause: "its process is gone: dead (silent)"}}).Brief(tty.Paint(false)); got != "hall: sfu-2 died -> sfu-1" {
		t.Errorf("in brief: %q", got)
	}
	bad := Line{Text: "a\x1b[2J\u202e👩\u200d👧", Bad: true}
	if got := bad.Show(tty.Paint(true)); got != "\x1b[31ma\ufffd[2J\ufffd👩\u200d👧\x1b[0m" {
		t.Errorf("%q", got)
	}
}

// TestMergerLeavesOutThatAMovedRoomOpens whichever of the two is heard first; a room that nobody moved is told of a second later.
func TestMergerLeavesOutThatAMovedRoomOpens(t *testing.T) {
	start := time.UnixMilli(1_000_000)
	moved := Event{Kind: RoomMoved, Room: "hall", From: "sfu-1", To: "sfu-2", Cause: "its node drains", At: start}
	opened := Event{Kind: RoomOpened, Room: "hall", Node: "sfu-2", At: start}
	elsewhere := Event{Kind: RoomOpened, Room: "hall", Node: "sfu-3", At: start}
	for _, order := range [][]Event{{moved, opened, elsewhere}, {opened, moved, elsewhere}, {elsewhere, opened, moved}} {
		var m Merger
		var got []string
		for _, e := range order {
			for _, line := range m.Add(e, start) {
				got = append(got, line.Text)
			}
		}
		if lines := m.Due(start.Add(mergeReports - time.Millisecond)); lines != nil {
			t.Errorf("told early: %+v", lines)
		}
		for _, line := range m.Due(start.Add(mergeReports)) {
			got = append(got, line.Text)
		}
		if want := []string{"hall: opened on sfu-3"}; !slices.Equal(got, want) {
			t.Errorf("%+v: %q", order, got)
		}
		if rest := m.Flush(); len(rest) != 1 || rest[0].Text != "hall: sfu-1 -> sfu-2 (its node drains)" || rest[0].Bad {
			t.Errorf("%+v: %+v", order, rest)
		}
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
