package livekit

import (
	"testing"
	"time"

	"github.com/livekit/protocol/livekit"
	lksdk "github.com/livekit/server-sdk-go/v2"
	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media"
)

// showLayers publishes a camera in three layers, whose frames have 200, 400 and 800 bytes.
func (p *person) showLayers(t *testing.T) {
	t.Helper()
	var tracks []*lksdk.LocalTrack
	for i, quality := range []livekit.VideoQuality{livekit.VideoQuality_LOW, livekit.VideoQuality_MEDIUM, livekit.VideoQuality_HIGH} {
		width, height := uint32(320)<<i, uint32(180)<<i
		track, err := lksdk.NewLocalTrack(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8, ClockRate: 90000}, lksdk.WithSimulcast("camera", &livekit.VideoLayer{Quality: quality, Width: width, Height: height}))
		if err != nil {
			t.Fatal(err)
		}
		tracks = append(tracks, track)
		frame := make([]byte, 200<<i)
		go func() {
			ticker := time.NewTicker(40 * time.Millisecond)
			defer ticker.Stop()
			for n := 0; ; n++ {
				select {
				case <-t.Context().Done():
					return
				case <-ticker.C:
				}
				next := append([]byte(nil), frame...)
				next[0] = 1
				if n%10 == 0 {
					copy(next, []byte{0x10, 0, 0, 0x9d, 0x01, 0x2a, byte(width), byte(width >> 8), byte(height), byte(height >> 8)})
				}
				_ = track.WriteSample(media.Sample{Data: next, Duration: 40 * time.Millisecond}, nil)
			}
		}()
	}
	if _, err := p.room.LocalParticipant.PublishSimulcastTrack(tracks, &lksdk.TrackPublicationOptions{Name: "camera", Source: livekit.TrackSource_CAMERA}); err != nil {
		t.Fatalf("not published: %v", err)
	}
}

func (p *person) sizeOf(of string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size[of]
}

// TestTheLayerFollowsTheQuality that a receiver asks for.
func TestTheLayerFollowsTheQuality(t *testing.T) {
	c := newCluster(t)
	for name, in := range map[string]func(*testing.T, *cluster, string, string) *person{
		"one connection":  join,
		"two connections": func(t *testing.T, c *cluster, room, identity string) *person { return connect(t, c, room, identity) },
	} {
		t.Run(name, func(t *testing.T) { layersFollow(t, in(t, c, name, "ann"), in(t, c, name, "bob")) })
	}
}

func layersFollow(t *testing.T, ann, bob *person) {
	t.Helper()
	ann.showLayers(t)
	flows(t, bob, "ann video")
	var track *lksdk.RemoteTrackPublication
	for _, pub := range bob.room.GetParticipantByIdentity("ann").TrackPublications() {
		track = pub.(*lksdk.RemoteTrackPublication)
	}
	for _, step := range []struct {
		quality      livekit.VideoQuality
		least, under int
	}{{livekit.VideoQuality_HIGH, 800, 900}, {livekit.VideoQuality_LOW, 200, 300}, {livekit.VideoQuality_MEDIUM, 400, 500}} {
		if err := track.SetVideoQuality(step.quality); err != nil {
			t.Fatal(err)
		}
		until(t, "the layer of quality "+step.quality.String(), func() bool {
			size := bob.sizeOf("ann video")
			return size >= step.least && size < step.under
		})
	}
	track.SetEnabled(false)
	until(t, "nothing more comes", func() bool {
		before := bob.got("ann video")
		time.Sleep(500 * time.Millisecond)
		return bob.got("ann video") == before
	})
	track.SetEnabled(true)
	flows(t, bob, "ann video")
}
