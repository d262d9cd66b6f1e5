package devcluster

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/tty"
)

// TestTheTerminalTellsADeathOnce: of a process that ended here the supervisor tells by itself, of a frozen one the cluster does.
func TestTheTerminalTellsADeathOnce(t *testing.T) {
	var shown bytes.Buffer
	s := New(Options{})
	s.out = newTerminal(&shown)
	f := newFollower(s, tty.Paint(true))
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	f.ended["sfu-2"] = now
	dead := "its process is gone: dead (proof: stream broken)"
	f.tell([]events.Event{
		{Kind: events.NodeDown, Node: "sfu-2", At: now, Cause: "proof: stream broken"},
		{Kind: events.NodeKilled, Node: "sfu-2", At: now, By: "ada"},
		{Kind: events.NodeDown, Node: "sfu-3", At: now, Cause: "silent"},
		{Kind: events.NodeUp, Node: "sfu-4", At: now, Version: "0.2.0"},
		{Kind: events.NodeDown, Node: "sfu-2", At: now.Add(time.Hour), Cause: "silent"},
		{Kind: events.RoomRehomed, Room: "hall", From: "sfu-2", To: "sfu-1", At: now, Cause: dead, About: "7"},
		{Kind: events.RoomBack, Room: "hall", Node: "signaling-1", Peers: 2, Back: 2, WorstGapMillis: 140, About: "7", At: now},
	}, now)
	f.tell(nil, now.Add(2*time.Second))
	s.out.close()
	want := strings.NewReplacer("<", "\x1b[", ">", "m", "/", "\x1b[0m").Replace(
		"<2>03:04:05/  <31>sfu-3 died (silent)/\n" +
			"<2>03:04:05/  sfu-4 is up\n" +
			"<2>04:04:05/  <31>sfu-2 died (silent)/\n" +
			"<2>03:04:05/  <1>hall/: <31>sfu-2 died/<2> (stream broken)/ -) <32>sfu-1/, <32>2 of 2 back/, worst 0.14 s\n")
	if want = strings.Replace(want, "-)", "->", 1); shown.String() != want {
		t.Errorf("shown\n%q\nwant\n%q", shown.String(), want)
	}
}
