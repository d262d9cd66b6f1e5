package signaling

import (
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestClientsKnowWhetherTheirNodeTakesTheSoundOfScreens, also when the room moves to one of another release.
func TestClientsKnowWhetherTheirNodeTakesTheSoundOfScreens(t *testing.T) {
	r, one, two, e := lobbyAndSpare(t)
	two.set(func() { two.older = true })
	ada, joined := e.join("lobby", "Ada")
	if !joined.ScreenAudio || !one.attaches[0].GetKnowsScreenAudio() {
		t.Errorf("joined %+v by %v", joined, one.attaches[0])
	}
	ada.say(&wire.Mute{Source: wire.SourceScreenAudio, Muted: false})
	testkit.Eventually(t, "word of the sound", func() bool { return strings.Contains(one.said(), "Ada mutes SOURCE_SCREEN_AUDIO false") })
	one.say("Ada", one.pin(firstEpoch).Fence, &control.PeerEvent{Event: &control.PeerEvent_Slots{Slots: &control.SlotTable{
		Slots: []*control.Slot{{Mid: "4", Kind: control.Kind_KIND_AUDIO, Peer: "p-9", Source: control.Source_SOURCE_SCREEN_AUDIO}},
	}}})
	if m := hear[*wire.Slots](ada); len(m.Slots) != 1 || m.Slots[0] != (wire.Slot{Mid: "4", Kind: wire.KindAudio, Peer: "p-9", Source: wire.SourceScreenAudio}) {
		t.Errorf("slots %+v", m)
	}
	to := two.pin(firstEpoch + 1)
	r.placer.set("lobby", to)
	e.Hub().Moved(t.Context(), "lobby", to)
	if restart := hear[*wire.Restart](ada); restart.Node != "sfu-2" || restart.ScreenAudio {
		t.Errorf("told %+v of a node from before that source", restart)
	}
	two.set(func() {
		if entry := two.attaches[0].GetPeer(); !entry.GetScreenAudio() {
			t.Errorf("attached as %v: the screen's sound is on", entry)
		}
	})
}
