package sfu

import (
	"slices"
	"time"

	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

const (
	// A client that alternates between codecs must not keep the room's loop busy.
	recodeEvery = time.Second
	// How late a packet may come. In this time numbers go by less than half of their range: see wildVideoPerSecond.
	overtakenFor = 5 * time.Second
)

func (s *stream) carries(payloadType uint8) bool {
	c := &s.config
	return payloadType == c.Codec.PayloadType || c.REDPayloadType != 0 && payloadType == c.REDPayloadType
}

// recode follows a client to another codec of the m-line on the same SSRC: the stream gets another layer. What is overtaken by the
// change is left to the layer, which refuses it. It needs mu.
func (u *uplink) recode(s *stream, header *rtp.Header, now time.Time) {
	line, since := u.lines[s.mid], now.Sub(s.recodedAt) // very long before the first
	overtaken := since < overtakenFor && int16(header.SequenceNumber-s.recodedFrom) < 0
	if line == nil || since < recodeEvery || overtaken {
		return
	}
	i := slices.IndexFunc(line.Codecs, func(c offer.Codec) bool { return c.PayloadType == header.PayloadType && c.Name != offer.NameRED })
	if i < 0 {
		return
	}
	s.recodedAt, s.recodedFrom = now, header.SequenceNumber
	s.codec, s.outdated = line.Codecs[i], true
	s.config.Codec = forwardCodec(s.codec)
	u.reception.Add(s.ssrc, s.codec.ClockRate, repairOf(&s.codec))
}
