package forward

import (
	"slices"
	"strings"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/forward/parse"
)

// takes also parses redundancy.
func (l *Layer) takes(p *Packet) (ok bool) {
	p.redundancy = parse.Redundancy{}
	switch {
	case p.header.PayloadType == l.cfg.Codec.PayloadType:
		return true
	case l.cfg.REDPayloadType == 0 || p.header.PayloadType != l.cfg.REDPayloadType:
		return false
	case p.empty():
		return true
	}
	p.redundancy, ok = parse.ReadRedundancy(p.payload(), l.cfg.Codec.PayloadType)
	return ok
}

// payloadFor leaves redundancy out unless negotiated.
func (p *Packet) payloadFor(to payloadTypes) (payload []byte, payloadType uint8) {
	payload = p.payload()
	switch {
	case p.redundancy.Blocks == 0:
		return payload, to.media
	case to.red == 0:
		return payload[p.redundancy.Newest:], to.media
	}
	p.redundancy.SetPayloadTypes(payload, to.media)
	return payload, to.red
}

// A slot gets redundancy for redundantFor after lossyPackets NACKs within lossyWithin.
const (
	lossyPackets = 3
	lossyWithin  = 6 * time.Second
	redundantFor = 20 * time.Second
)

type losses struct {
	asked [lossyPackets]time.Time
	next  int
	until time.Time // lossy until then
}

func (l *losses) note(now time.Time) {
	oldest := l.asked[l.next]
	l.asked[l.next] = now
	l.next = (l.next + 1) % lossyPackets
	if !oldest.IsZero() && now.Sub(oldest) < lossyWithin {
		l.until = now.Add(redundantFor)
	}
}

// Narrow paths get no redundancy, others after losses, or always without NACK.
func (s *Slot) wants(arrived time.Time) payloadTypes {
	to := s.payload
	if to.red != 0 && (s.sub.budget != 0 || s.cfg.Repeat != nil && arrived.After(s.losses.until)) {
		to.red = 0
	}
	return to
}

func (s *Slot) redPayloadType() uint8 {
	if i := slices.IndexFunc(s.cfg.Codecs, func(c Codec) bool { return strings.EqualFold(c.MimeType, "audio/red") }); i >= 0 {
		return s.cfg.Codecs[i].PayloadType
	}
	return 0
}
