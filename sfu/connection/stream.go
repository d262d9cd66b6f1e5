package connection

import (
	"time"

	pacing "golang.org/x/time/rate"

	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

type stream struct {
	identity
	ssrc     uint32
	original *stream // what RTX repairs
	source   forward.Source
	codec    offer.Codec
	layer    *forward.Layer // nil: the room has not taken it
	replaced bool
	pace     *pacing.Limiter
	config   forward.LayerConfig

	outdated    bool      // layer is of another codec
	recodedAt   time.Time // zero: never
	recodedFrom uint16    // sequence number
}

func (s *stream) carries(payloadType uint8) bool {
	c := &s.config
	return payloadType == c.Codec.PayloadType || c.REDPayloadType != 0 && payloadType == c.REDPayloadType
}

// What one encoding may send: several times what browsers do. The rest is dropped before the room's queue.
const (
	// Opus sends at most 100.
	wildAudioPerSecond, wildAudioBurst = 500, 500
	// 38 Mbit/s.
	wildVideoPerSecond, wildVideoBurst = 4000, 2000
)

func newPace(kind forward.Kind) *pacing.Limiter {
	if kind == forward.KindAudio {
		return pacing.NewLimiter(wildAudioPerSecond, wildAudioBurst)
	}
	return pacing.NewLimiter(wildVideoPerSecond, wildVideoBurst)
}
