package peer

import (
	"testing"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

func TestTheViewShowsTheOthersInAGrid(t *testing.T) {
	roster := func(ids ...wire.PeerID) (list wire.List[wire.Peer]) {
		for _, id := range ids {
			list = append(list, wire.Peer{Peer: id})
		}
		return list
	}
	var others audience
	for _, step := range []struct {
		name    string
		message wire.Message
		changed bool
		others  int
		width   uint32
	}{
		{"joined an empty room", &wire.Joined{Peer: "me", Roster: roster("me")}, true, 0, 0},
		{"somebody comes", &wire.PeerJoined{Peer: wire.Peer{Peer: "a"}}, true, 1, 1280},
		{"is told twice", &wire.PeerJoined{Peer: wire.Peer{Peer: "a"}}, false, 1, 1280},
		{"I am told of myself", &wire.PeerJoined{Peer: wire.Peer{Peer: "me"}}, false, 1, 1280},
		{"the same again", &wire.Roster{Roster: roster("me", "a")}, false, 1, 1280},
		{"four more", &wire.Roster{Roster: roster("a", "b", "me", "c", "d", "e")}, true, 5, 426},
		{"one leaves", &wire.PeerLeft{Peer: "b"}, true, 4, 640},
		{"another signaling node", &wire.Resumed{Roster: roster("a", "c", "d", "e", "me")}, true, 4, 640},
		{"something else", &wire.Pong{}, false, 4, 640},
	} {
		if changed := others.heard(step.message, "me"); changed != step.changed {
			t.Errorf("%s: changed %t", step.name, changed)
		}
		view := others.view(12)
		if len(view.Wants) != step.others {
			t.Errorf("%s: the view has %d pictures, want %d", step.name, len(view.Wants), step.others)
			continue
		}
		for _, want := range view.Wants {
			if want.Width != step.width || want.Peer == "me" {
				t.Errorf("%s: %+v, want width %d", step.name, want, step.width)
			}
		}
	}
	if n := len(others.view(3).Wants); n != 3 {
		t.Errorf("%d pictures in 3 slots", n)
	}
}
