package livekit

import (
	"slices"
	"strings"

	"github.com/holdfast-rtc/holdfast/signaling/livekit/livekitpb"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// restNew is for tracks of which the client was told nothing yet. One that it published on another connection may have layers that rest still.
func (t *Translator) restNew() {
	if slices.ContainsFunc(t.published.tracks, func(o *ownTrack) bool { return !o.restTold && o.mayRest() }) {
		t.rest(t.published.resting)
	}
}

// rest tells the client which layers of its tracks to send: its dynacast. A client without it goes on with all of them.
func (t *Translator) rest(resting wire.List[wire.RestingLayers]) {
	t.published.resting = resting
	for _, o := range t.published.tracks {
		if !o.mayRest() {
			continue
		}
		o.restTold = true
		codec := o.codec()
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

func (o *ownTrack) mayRest() bool { return o.info.GetSimulcast() && o.mid != "" && o.codec() != "" }

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
