package sfu

import (
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

func sourceOf(source control.Source) (forward.Source, bool) {
	switch source {
	case control.Source_SOURCE_MICROPHONE:
		return forward.SourceMicrophone, true
	case control.Source_SOURCE_CAMERA:
		return forward.SourceCamera, true
	case control.Source_SOURCE_SCREEN:
		return forward.SourceScreen, true
	case control.Source_SOURCE_SCREEN_AUDIO:
		return forward.SourceScreenAudio, true
	case control.Source_SOURCE_UNSPECIFIED:
	}
	return "", false
}

func sourceProto(source forward.Source) control.Source {
	switch source {
	case forward.SourceMicrophone:
		return control.Source_SOURCE_MICROPHONE
	case forward.SourceCamera:
		return control.Source_SOURCE_CAMERA
	case forward.SourceScreen:
		return control.Source_SOURCE_SCREEN
	case forward.SourceScreenAudio:
		return control.Source_SOURCE_SCREEN_AUDIO
	}
	return control.Source_SOURCE_UNSPECIFIED
}

func forwardKind(line *offer.Section) forward.Kind {
	if line.Audio {
		return forward.KindAudio
	}
	return forward.KindVideo
}

func passedExtensions(line *offer.Section) forward.PassedExtensions {
	ids := &line.Extensions
	return forward.PassedExtensions{ids.AbsCaptureTime, ids.PlayoutDelay, ids.VideoOrientation}
}

func forwardCodec(codec offer.Codec) forward.Codec {
	return forward.Codec{
		MimeType: codec.MimeType, Fmtp: codec.Fmtp, ClockRate: codec.ClockRate,
		PayloadType: codec.PayloadType, RTXPayloadType: codec.RTXPayloadType,
	}
}

// Above any screen; sums of areas cannot overflow.
const maxPixels = 1 << 15

func pixels(n uint32) int { return int(min(n, maxPixels)) }
