package livekit

import (
	"testing"
	"time"

	"github.com/livekit/protocol/livekit"
	lksdk "github.com/livekit/server-sdk-go/v2"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media"
)

// TestSpeakers: who is loud is told, and who is quiet again is no longer.
func TestSpeakers(t *testing.T) {
	c := newCluster(t)
	ann, bob := connect(t, c, "lobby", "ann"), join(t, c, "lobby", "bob")
	track, err := lksdk.NewLocalTrack(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ann.room.LocalParticipant.PublishTrack(track, &lksdk.TrackPublicationOptions{Source: livekit.TrackSource_MICROPHONE}); err != nil {
		t.Fatal(err)
	}
	levels := make(chan uint8, 1)
	go func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		level := uint8(20)
		for {
			select {
			case <-t.Context().Done():
				return
			case level = <-levels:
			case <-ticker.C:
				_ = track.WriteSample(media.Sample{Data: []byte{0xf8, 0xff, 0xfe}, Duration: 20 * time.Millisecond}, &lksdk.SampleWriteOptions{AudioLevel: &level})
			}
		}
	}()
	speaks := func() bool {
		for _, p := range bob.room.ActiveSpeakers() {
			if p.Identity() == "ann" && p.AudioLevel() > 0 {
				return true
			}
		}
		return false
	}
	until(t, "bob is told that ann speaks", speaks)
	levels <- 127
	until(t, "bob is told that ann is quiet", func() bool { return !speaks() })
}
