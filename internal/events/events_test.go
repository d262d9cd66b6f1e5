package events

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
)

func TestEncodeAndParse(t *testing.T) {
	e := Event{Kind: RoomBack, Room: "hall", Node: "signaling-1", Peers: 3, Back: 2, WorstGapMillis: 140, About: "7/8", Cause: strings.Repeat("ä", 400)}
	text, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse("1795783230243-1", text)
	if err != nil {
		t.Fatal(err)
	}
	if got.At.UnixMilli() != 1795783230243 || got.ID != "1795783230243-1" || len(got.Cause) != maxText || got.WorstGapMillis != 140 || got.Same() != e.Same() {
		t.Errorf("%+v", got)
	}
	e.Room = ring.RoomID(strings.Repeat("x", maxStored))
	if _, err := e.Encode(); err == nil {
		t.Error("an event of more than 4 KiB was encoded")
	}
}

func TestWhatIsTheSameFact(t *testing.T) {
	one := Event{Kind: RoomRehomed, Room: "a/b", Node: "c", About: "7"}
	for _, other := range []Event{
		{Kind: RoomMoved, Room: "a/b", Node: "c", About: "7"},
		{Kind: RoomRehomed, Room: "a", Node: "b/c", About: "7"},
		{Kind: RoomRehomed, Room: "a/b", Node: "c", About: "8"},
	} {
		if one.Same() == other.Same() {
			t.Errorf("%+v is taken for %+v", other, one)
		}
	}
	if again := (Event{Kind: RoomRehomed, Room: "a/b", Node: "c", About: "7", Cause: "seen by another node"}); one.Same() != again.Same() {
		t.Error("two reports of one fact are two facts")
	}
}

func TestFilter(t *testing.T) {
	e := Event{Kind: RoomRehomed, Room: "hall", From: "sfu-1", To: "sfu-2"}
	for _, c := range []struct {
		filter Filter
		want   bool
	}{
		{Filter{}, true},
		{Filter{Room: "hall", Node: "sfu-1"}, true},
		{Filter{Node: "sfu-2", Kinds: []Kind{RoomMoved, RoomRehomed}}, true},
		{Filter{Room: "cellar"}, false},
		{Filter{Node: "sfu-3"}, false},
		{Filter{Kinds: []Kind{RoomMoved}}, false},
	} {
		if got := c.filter.Selects(e); got != c.want {
			t.Errorf("%+v: %t", c.filter, got)
		}
	}
}

func TestSentences(t *testing.T) {
	for want, e := range map[string]Event{
		"hall: sfu-2 -> sfu-1 (its process is gone: dead)":                 {Kind: RoomRehomed, Room: "hall", From: "sfu-2", To: "sfu-1", Cause: "its process is gone: dead"},
		"hall: 2 of 2 back at signaling-1, worst gap 0.14 s":               {Kind: RoomBack, Room: "hall", Node: "signaling-1", Peers: 2, Back: 2, WorstGapMillis: 140},
		"sfu-1 is up (version 0.1.0)":                                      {Kind: NodeUp, Node: "sfu-1", Version: "0.1.0"},
		"hall: 1 more back at signaling-1, after 15.00 s":                  {Kind: RoomBack, Room: "hall", Node: "signaling-1", Back: 1, WorstGapMillis: 15_000},
		"sfu-1 is back: it was frozen or cut off, not dead":                {Kind: NodeBack, Node: "sfu-1"},
		"sfu-1 drains, ordered by root":                                    {Kind: NodeDrains, Node: "sfu-1", By: "root"},
		"hall: a move to sfu-2 was ordered by root":                        {Kind: MoveOrdered, Room: "hall", To: "sfu-2", By: "root"},
		"hall: somebody was removed by ada":                                {Kind: PersonRemoved, Room: "hall", By: "ada"},
		"hall: the door is closed, cap 5, by ada":                          {Kind: DoorChanged, Room: "hall", Cause: "closed, cap 5", By: "ada"},
		"sfu-1 no longer drains":                                           {Kind: NodeUndrains, Node: "sfu-1"},
		"the store answers signaling-1 again (silent for 12s)":             {Kind: StoreBack, Node: "signaling-1", Cause: "silent for 12s"},
		"hall: 2 webhooks were given up (no answer)":                       {Kind: WebhookLost, Room: "hall", Peers: 2, Cause: "no answer"},
		"hall reached a limit (1000 people)":                               {Kind: LimitReached, Room: "hall", Node: "sfu-1", Cause: "1000 people"},
		"sfu-1 reached a limit (5000 rooms)":                               {Kind: LimitReached, Node: "sfu-1", Cause: "5000 rooms"},
		"hall: sfu-2 carries some of its people now (by hand)":             {Kind: RoomSpread, Room: "hall", Node: "sfu-1", To: "sfu-2", Cause: "by hand"},
		"hall: the people at sfu-2 are gathered (by hand)":                 {Kind: RoomGathered, Room: "hall", Node: "sfu-1", From: "sfu-2", Cause: "by hand"},
		"hall: its branch sfu-2, with 7 people, holds it now, after sfu-1": {Kind: BranchPromoted, Room: "hall", Node: "sfu-2", From: "sfu-1", Peers: 7},
		"the cluster reached a limit":                                      {Kind: LimitReached},
		"comet hall sfu-1":                                                 {Kind: "comet", Room: "hall", Node: "sfu-1"},
	} {
		if got := e.Sentence(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestBefore(t *testing.T) {
	at := time.UnixMilli(1000)
	if got, err := TimeOf(Before(at)); err != nil || !got.Before(at) {
		t.Errorf("%v, %v", got, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("1795783230243-0", `{"kind":"node_up","node":"sfu-1"}`)
	f.Add("-", `{`)
	f.Fuzz(func(t *testing.T, id, text string) {
		e, err := Parse(id, text)
		if err != nil {
			return
		}
		if e.ID != id || e.Kind == "" || e.Sentence() == "" {
			t.Errorf("%q %q became %+v", id, text, e)
		}
	})
}
