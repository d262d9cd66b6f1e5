package sfu

import (
	"slices"
	"testing"

	"github.com/pion/webrtc/v4"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

func (e *attachStream) says(source control.Source, muted bool) {
	e.send(&control.PeerMessage{Message: &control.PeerMessage_Mute{Mute: &control.Mute{Source: source, Muted: muted}}})
}

// showsSound reports whether the last table has bob's screen heard.
func (e *attachStream) showsSound() bool {
	return slices.ContainsFunc(e.lastSlots(), func(s *control.Slot) bool {
		return s.GetPeer() == "bob" && s.GetSource() == control.Source_SOURCE_SCREEN_AUDIO && s.GetKind() == control.Kind_KIND_AUDIO
	})
}

// TestAScreensSoundIsASourceOfItsOwn: it comes beside the microphone, everybody is told of it, and an older signaling node is not.
func TestAScreensSoundIsASourceOfItsOwn(t *testing.T) {
	s := newStage(t, "one")
	knows := func(a *control.Attach) { a.KnowsScreenAudio = true }
	aliceEdge, attached := s.attach("room", "alice", 1, knows)
	if !attached.GetTakesScreenAudio() {
		t.Error("the node does not say that it takes the sound of screens")
	}
	oldEdge, _ := s.attach("room", "old", 1)
	alice, old := newMediaClient(t, 'a', false, 3), newMediaClient(t, 'o', false, 3)
	alice.negotiate(aliceEdge, nil)
	old.negotiate(oldEdge, nil)
	bobEdge, _ := s.attach("room", "bob", 1, knows)
	bob := newMediaClient(t, 'b', true, 0)
	bob.publish(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2}, control.Source_SOURCE_SCREEN_AUDIO)
	bob.negotiate(bobEdge, nil)
	bob.goSend()
	bobEdge.says(control.Source_SOURCE_SCREEN, false)
	bobEdge.says(control.Source_SOURCE_SCREEN_AUDIO, false)
	aliceEdge.updated("bob", (*control.Peer).GetScreenAudio)
	eventually(t, "alice is shown it", aliceEdge.showsSound)
	for _, slots := range [][]*control.Slot{aliceEdge.lastSlots(), oldEdge.lastSlots()} {
		if !slices.ContainsFunc(slots, func(s *control.Slot) bool { return s.GetSource() == control.Source_SOURCE_MICROPHONE }) {
			t.Errorf("bob's microphone is in no slot: %v", slots)
		}
	}
	for _, slot := range oldEdge.lastSlots() {
		if (slot.GetSource() == control.Source_SOURCE_UNSPECIFIED) != (slot.GetPeer() == "") || slot.GetSource() == control.Source_SOURCE_SCREEN_AUDIO {
			t.Errorf("an older signaling node is told of %v", slot)
		}
	}

	takes := func() bool { return s.packetsOf("bob", forward.SourceScreenAudio) > 0 }
	eventually(t, "the screen's sound is taken", takes)
	s.moderate(&control.ModerateRequest{Act: control.Act_ACT_MUTE, Peer: "bob", Source: control.Source_SOURCE_SCREEN_AUDIO, By: "Alice"})
	aliceEdge.updated("bob", func(p *control.Peer) bool { return !p.GetScreenAudio() && p.GetScreenShared() })
	if takes() || s.packetsOf("bob", forward.SourceCamera) == 0 {
		t.Error("the connection silences something else than the screen's sound")
	}
	bobEdge.says(control.Source_SOURCE_SCREEN_AUDIO, false)
	aliceEdge.updated("bob", (*control.Peer).GetScreenAudio)
	eventually(t, "the screen's sound is taken again", takes)
	s.moderate(&control.ModerateRequest{Act: control.Act_ACT_MUTE, Peer: "bob", Source: control.Source_SOURCE_SCREEN, By: "Alice"})
	aliceEdge.updated("bob", func(p *control.Peer) bool { return !p.GetScreenAudio() && !p.GetScreenShared() })
	if takes() || s.packetsOf("bob", forward.SourceCamera) == 0 {
		t.Error("the connection silences something else than the screen and its sound")
	}
}
