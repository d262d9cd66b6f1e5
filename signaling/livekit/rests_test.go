package livekit

import (
	"slices"
	"testing"

	"github.com/holdfast-rtc/holdfast/signaling/livekit/livekitpb"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestDynacast: the client is told of layers that nobody shows, and that all are wanted where its media goes on at another node.
func TestDynacast(t *testing.T) {
	for _, codec := range []string{"vp8", "vp9"} {
		c := joined(t, &livekitpb.JoinRequest{
			AddTrackRequests: []*livekitpb.AddTrackRequest{
				{Cid: "mic", Source: livekitpb.TrackSource_MICROPHONE},
				{
					Cid: "cam", Type: livekitpb.TrackType_VIDEO, Source: livekitpb.TrackSource_CAMERA, Layers: make([]*livekitpb.VideoLayer, 3),
					SimulcastCodecs: []*livekitpb.SimulcastCodec{{Codec: codec, Cid: "cam"}},
				},
			},
			PublisherOffer: &livekitpb.SessionDescription{Sdp: plainOffer, Id: 1},
		})
		offers := heard[*wire.Offer](c)
		if len(offers) != 1 || !offers[0].Rests {
			t.Fatalf("offered %+v", offers)
		}
		c.published.withCID("cam").mid = "2"
		c.told()
		// A new connection begins with all layers, whatever the client did on the last one.
		c.restNew()
		c.restNew()
		c.hear(&wire.Rests{Resting: wire.List[wire.RestingLayers]{{Mid: "2", RIDs: wire.List[string]{"f", "h"}}}})
		c.hear(&wire.Slots{Node: "sfu-2"})
		var told [][]bool
		for _, frame := range c.told() {
			update := frame.GetSubscribedQualityUpdate()
			if update == nil {
				continue
			}
			if len(update.GetSubscribedCodecs()) != 1 || update.GetSubscribedCodecs()[0].GetCodec() != codec || update.GetTrackSid() != c.published.withCID("cam").info.GetSid() {
				t.Errorf("told %v", update)
			}
			var enabled []bool
			for i, quality := range update.GetSubscribedCodecs()[0].GetQualities() {
				if quality.GetQuality() != livekitpb.VideoQuality(i) {
					t.Errorf("quality %d is %s", i, quality.GetQuality())
				}
				enabled = append(enabled, quality.GetEnabled())
			}
			told = append(told, enabled)
		}
		want := [][]bool{{true, true, true}, {true, false, false}, {true, true, true}}
		if codec == "vp9" { // Its layers are one stream.
			want = nil
		}
		if !slices.EqualFunc(told, want, slices.Equal) {
			t.Errorf("%s: told %v, want %v", codec, told, want)
		}
	}
}
