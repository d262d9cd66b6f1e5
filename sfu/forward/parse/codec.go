package parse

import (
	"strings"

	"github.com/holdfast-rtc/holdfast/sfu/h264"
)

// Codec says how a payload is read.
type Codec uint8

// The codecs. Opaque is audio, or video of which no payload is read: every packet may begin a keyframe.
const (
	Opaque Codec = iota
	VP8
	VP9
	AV1
	H264
)

// CodecOf returns the codec of a MIME type, in any case; Opaque if it is none of the others.
func CodecOf(mimeType string) Codec {
	switch {
	case strings.EqualFold(mimeType, "video/VP8"):
		return VP8
	case strings.EqualFold(mimeType, "video/VP9"):
		return VP9
	case strings.EqualFold(mimeType, "video/AV1"):
		return AV1
	case strings.EqualFold(mimeType, "video/H264"):
		return H264
	default:
		return Opaque
	}
}

// FormatOf names what a decoder must know of a stream: a slot can continue with any layer of an equal format. The profile and the
// packetization mode of H264 are part of it.
func FormatOf(mimeType, fmtp string) string {
	mime := strings.ToLower(mimeType)
	if CodecOf(mimeType) != H264 {
		return mime
	}
	return mime + ";" + h264.Format(fmtp)
}
