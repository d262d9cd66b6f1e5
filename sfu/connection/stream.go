package connection

import (
	"sync/atomic"
	"time"

	pacing "golang.org/x/time/rate"

	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

// stream is what comes from one SSRC of the client. It is guarded by uplink.mu.
type stream struct {
	identity
	ssrc uint32
	// original is the stream whose packets an RTX stream repeats. An RTX stream has no layer of its own.
	original *stream
	source   forward.Source
	codec    offer.Codec
	// layer is nil until the room has taken the stream, and while the source is muted by a moderator.
	layer *forward.Layer
	// resting says that nobody shows the layer, so that it need not come.
	resting atomic.Bool
	// replaced says that the encoding goes on with another SSRC, so that what still comes is dropped.
	replaced bool
	pace     *pacing.Limiter
	config   forward.LayerConfig

	// outdated says that layer is of the codec from before the last change.
	outdated bool
	// recodedAt is the time of the last change of codec, zero for none. recodedFrom is the first sequence number after it.
	recodedAt   time.Time
	recodedFrom uint16
}

// carries reports whether packets of the payload type belong to the stream's present codec, or to RED around it.
func (s *stream) carries(payloadType uint8) bool {
	c := &s.config
	return payloadType == c.Codec.PayloadType || c.REDPayloadType != 0 && payloadType == c.REDPayloadType
}

// An encoding may send several times what browsers send. What is more than that is dropped before it reaches the room's queue.
const (
	// Opus sends at most 100 packets a second.
	wildAudioPerSecond, wildAudioBurst = 500, 500
	// These are 38 Mbit/s.
	wildVideoPerSecond, wildVideoBurst = 4000, 2000
)

func newPace(kind forward.Kind) *pacing.Limiter {
	if kind == forward.KindAudio {
		return pacing.NewLimiter(wildAudioPerSecond, wildAudioBurst)
	}
	return pacing.NewLimiter(wildVideoPerSecond, wildVideoBurst)
}
