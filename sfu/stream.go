package sfu

import (
	"encoding/binary"
	"slices"
	"time"

	pacing "golang.org/x/time/rate"

	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
	"github.com/holdfast-rtc/holdfast/sfu/reception"
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

// restore writes the packet that a retransmission repeats (RFC 4588 section 4). It returns its length, 0 for padding
// and nonsense.
func restore(b, packet []byte, of *stream) int {
	start := payloadStart(packet)
	if start == 0 || len(packet) < start+2 {
		return 0
	}
	original := packet[start : start+2]
	n := copy(b, packet[:start])
	n += copy(b[n:], packet[start+2:])
	b[1] = b[1]&0x80 | of.codec.PayloadType
	copy(b[2:], original)
	binary.BigEndian.PutUint32(b[8:], of.ssrc)
	if b[0]&0x20 != 0 && int(b[n-1]) >= n-start { // only padding
		return 0
	}
	return n
}

// payloadStart is 0 for a truncated header (RFC 3550 section 5.1).
func payloadStart(b []byte) int {
	if len(b) < 12 {
		return 0
	}
	start := 12 + 4*int(b[0]&0x0F)
	if b[0]&0x10 != 0 {
		if len(b) < start+4 {
			return 0
		}
		start += 4 + 4*int(binary.BigEndian.Uint16(b[start+2:]))
	}
	if len(b) < start {
		return 0
	}
	return start
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

func opusOf(line *offer.Section) (offer.Codec, bool) {
	i := slices.IndexFunc(line.Codecs, func(c offer.Codec) bool { return c.MimeType == "audio/opus" })
	if i < 0 {
		return offer.Codec{}, false
	}
	return line.Codecs[i], true
}

func redOf(line *offer.Section) uint8 {
	if i := slices.IndexFunc(line.Codecs, func(c offer.Codec) bool { return c.Name == offer.NameRED }); i >= 0 {
		return line.Codecs[i].PayloadType
	}
	return 0
}

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
