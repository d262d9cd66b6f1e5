package connection

import (
	"slices"

	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
	"github.com/holdfast-rtc/holdfast/sfu/reception"
)

func forwardKind(line *offer.Section) forward.Kind {
	if line.Audio {
		return forward.KindAudio
	}
	return forward.KindVideo
}

// passedExtensions are the ids of the header extensions that are forwarded as they came.
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

// opusOf finds the codec of which RED carries copies.
func opusOf(line *offer.Section) (offer.Codec, bool) {
	i := slices.IndexFunc(line.Codecs, func(c offer.Codec) bool { return c.MimeType == "audio/opus" })
	if i < 0 {
		return offer.Codec{}, false
	}
	return line.Codecs[i], true
}

// redOf returns the payload type of RED, or 0.
func redOf(line *offer.Section) uint8 {
	if i := slices.IndexFunc(line.Codecs, func(c offer.Codec) bool { return c.Name == offer.NameRED }); i >= 0 {
		return line.Codecs[i].PayloadType
	}
	return 0
}

// repairOf says how the client repeats packets of the codec that were lost.
func repairOf(codec *offer.Codec) reception.Repair {
	switch {
	case !codec.NACK():
		return reception.NoRepair
	case codec.RTXPayloadType == 0:
		return reception.Repeats
	default:
		return reception.RTX
	}
}

// maxOneByteID is the highest id of the one-byte form of header extensions (RFC 8285 section 4.2), which is what sfu/forward writes.
const maxOneByteID = 14

// transportSequenceID returns 0 where the m-line has no usable id of transport-wide numbers.
func transportSequenceID(line *offer.Section) uint8 {
	if id := line.Extensions.TransportCC; id <= maxOneByteID {
		return id
	}
	return 0
}
