package forward

import (
	"slices"

	"github.com/pion/rtp"
)

// The most that RTP has (RFC 3550 section 5.1).
const probePadding = 255

func (sub *subscriber) probe() {
	if sub.short == 0 {
		return
	}
	i := slices.IndexFunc(sub.slots, (*Slot).canProbe)
	if i < 0 {
		return
	}
	s := sub.slots[i]
	paused := slices.ContainsFunc(sub.slots, func(s *Slot) bool { return s.paused })
	for bytes := s.cfg.Path.Probe(sub.short, paused); bytes > 0; bytes -= probePadding + wireOverhead {
		s.pad()
	}
}

// Browsers take padding in RTX, which uses no numbers of the media.
func (s *Slot) canProbe() bool {
	return s.ready && s.cfg.Path != nil && s.cfg.TransportSequenceID != 0 && s.cfg.RTXSSRC != 0 && s.rtxPayloadType() != 0
}

func (s *Slot) rtxPayloadType() uint8 {
	for _, c := range s.cfg.Codecs {
		if c.RTXPayloadType != 0 {
			return c.RTXPayloadType
		}
	}
	return 0
}

func (s *Slot) pad() {
	payload := s.room.scratch[:probePadding]
	clear(payload)
	payload[probePadding-1] = probePadding
	s.header = rtp.Header{
		Version: 2, Padding: true, PayloadType: s.rtxPayloadType(), SequenceNumber: s.rtxSequence,
		Timestamp: s.rewriter.timestamp, SSRC: s.cfg.RTXSSRC, Extensions: s.header.Extensions[:0],
	}
	s.rtxSequence++
	s.number(len(payload))
	if n, err := s.cfg.Writer.WriteRTP(&s.header, payload); s.wrote(n, err) {
		s.room.stats.probes.Add(1)
	}
}
