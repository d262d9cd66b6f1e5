package livekit

import (
	"slices"
	"strings"

	"github.com/holdfast-rtc/holdfast/signaling/livekit/livekitpb"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// rest tells the client which layers of its tracks to send: its dynacast. A client without it goes on with all of them.
func (t *Translator) rest(resting wire.List[wire.RestingLayers]) {
	for _, o := range t.published.tracks {
		codec := o.codec()
		if !o.info.GetSimulcast() || o.mid == "" || codec == "" {
			continue
		}
		var rids wire.List[string]
		if i := slices.IndexFunc(resting, func(r wire.RestingLayers) bool { return r.Mid == o.mid }); i >= 0 {
			rids = resting[i].RIDs
		}
		var qualities []*livekitpb.SubscribedQuality
		for quality, rid := range []string{"q", "h", "f"} {
			qualities = append(qualities, &livekitpb.SubscribedQuality{Quality: livekitpb.VideoQuality(quality), Enabled: !slices.Contains(rids, rid)})
		}
		t.tell(&livekitpb.SignalResponse{Message: &livekitpb.SignalResponse_SubscribedQualityUpdate{SubscribedQualityUpdate: &livekitpb.SubscribedQualityUpdate{
			TrackSid: o.info.GetSid(), SubscribedQualities: qualities,
			SubscribedCodecs: []*livekitpb.SubscribedCodec{{Codec: codec, Qualities: qualities}},
		}}})
	}
}

// codec is that of a track whose layers are streams of their own, or empty. A client publishes once more in a codec that it does not know the
// track to have.
func (o *ownTrack) codec() string {
	switch name := strings.ToLower(strings.TrimPrefix(o.info.GetMimeType(), "video/")); name {
	case "":
		return "vp8"
	case "vp8", "h264":
		return name
	default:
		return ""
	}
}
