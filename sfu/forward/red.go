package forward

import (
	"slices"
	"strings"
	"time"
)

// redundancy locates the blocks of an RFC 2198 payload.
type redundancy struct {
	blocks int // 0: no such payload
	newest int
}

// The newest block's header has one byte, and a clear first bit.
const blockHeaderBytes = 4

// parseRED is false unless every block has the payload type.
func parseRED(b []byte, payloadType uint8) (r redundancy, ok bool) {
	at, older := 0, 0
	for r.blocks = 1; ; r.blocks++ {
		if len(b) <= at || b[at]&0x7F != payloadType {
			return redundancy{}, false
		}
		if b[at]&0x80 == 0 {
			r.newest = at + 1 + older
			return r, r.newest <= len(b)
		}
		if len(b) < at+blockHeaderBytes {
			return redundancy{}, false
		}
		older += int(b[at+2]&0x03)<<8 | int(b[at+3])
		at += blockHeaderBytes
	}
}

// takes also parses redundancy.
func (l *Layer) takes(p *Packet) (ok bool) {
	p.redundancy = redundancy{}
	switch {
	case p.header.payloadType == l.cfg.Codec.PayloadType:
		return true
	case l.cfg.REDPayloadType == 0 || p.header.payloadType != l.cfg.REDPayloadType:
		return false
	case p.empty():
		return true
	}
	p.redundancy, ok = parseRED(p.payload(), l.cfg.Codec.PayloadType)
	return ok
}

// payloadFor leaves redundancy out unless negotiated.
func (p *Packet) payloadFor(to payloadTypes) (payload []byte, payloadType uint8) {
	payload = p.payload()
	switch {
	case p.redundancy.blocks == 0:
		return payload, to.media
	case to.red == 0:
		return payload[p.redundancy.newest:], to.media
	}
	for i := range p.redundancy.blocks {
		header := &payload[i*blockHeaderBytes]
		*header = *header&0x80 | to.media
	}
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
