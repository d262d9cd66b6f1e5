package twirp

import (
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/signaling/livekit"
	"github.com/holdfast-rtc/holdfast/signaling/livekit/livekitpb"
	"github.com/holdfast-rtc/holdfast/signaling/translate"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// row is one source of tracks.
type row struct {
	source control.Source
	name   livekitpb.TrackSource
	kind   livekitpb.TrackType
}

func rows() []row {
	return []row{
		{control.Source_SOURCE_MICROPHONE, livekitpb.TrackSource_MICROPHONE, livekitpb.TrackType_AUDIO},
		{control.Source_SOURCE_CAMERA, livekitpb.TrackSource_CAMERA, livekitpb.TrackType_VIDEO},
		{control.Source_SOURCE_SCREEN, livekitpb.TrackSource_SCREEN_SHARE, livekitpb.TrackType_VIDEO},
		{control.Source_SOURCE_SCREEN_AUDIO, livekitpb.TrackSource_SCREEN_SHARE_AUDIO, livekitpb.TrackType_AUDIO},
	}
}

// bit is that of control.Attach.
func (r row) bit() uint32 { return 1 << (r.source - control.Source_SOURCE_MICROPHONE) }

// sid is the id that clients of LiveKit are told of the peer's track, too.
func (r row) sid(peer string) string {
	return livekit.TrackSID(wire.PeerID(peer), translate.Source(r.source))
}
