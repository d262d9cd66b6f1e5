package forward

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"time"

	"github.com/pion/rtp"
)

// forward writes one packet of a layer that the slot shows or waits for. It is
// the hot path: it allocates nothing.
func (s *Slot) forward(p *Packet) {
	if !s.ready {
		return
	}
	in := p.incoming()
	if p.layer == s.current {
		s.write(p, &in)
		return
	}
	if p.layer != s.target || in.empty || !p.picture.keyframe || !s.change(p, &in) {
		return
	}
	s.write(p, &in)
	// The keyframe's first packet may come late, or be replayed: what came
	// before it in time and belongs behind it follows at once.
	for sequence := p.sequence + 1; sequence <= p.layer.tracker.highest; sequence++ {
		if next := p.layer.cache.get(sequence); next != nil {
			s.pass(next)
		}
	}
}

// write rewrites one packet of the current layer and sends it.
func (s *Slot) write(p *Packet, in *incoming) {
	if ahead := s.rewriter.ahead(p.sequence); p.described {
		in.dropped = s.targets().drops(p, ahead, s.spatial, s.temporal.wanted)
	} else {
		in.dropped = s.temporal.drops(p, ahead)
	}
	out, ok := s.rewriter.rewrite(in)
	if !ok {
		return
	}
	if out.filler {
		s.fill(p, out)
		return
	}
	if sampled := p.layer.clock.sampled(in.timestamp); sampled.After(s.newest) {
		s.newest, s.newestArrived = sampled, p.arrived
	}
	payload, payloadType := p.payloadFor(s.wants(p.arrived))
	p.picture.patch(payload, out.pictureID, out.tl0)
	s.setHeader(p, out, s.cfg.SSRC, payloadType)
	s.header.Padding, s.header.PaddingSize = p.padding > 0, p.padding
	s.number(len(payload) + int(p.padding))
	n, err := s.cfg.Writer.WriteRTP(&s.header, payload)
	if s.wrote(n, err) {
		s.room.stats.shards[s.cfg.Shard].forwarded.Add(1)
		s.report.sent(len(payload))
		s.charge(n)
		if p.picture.keyframe && s.cfg.Kind == KindVideo {
			s.keyframes++
			s.keyframeAt = p.arrived
		}
	}
}

// fill writes padding under a number that was left free for a packet, so that nobody asks for it.
func (s *Slot) fill(p *Packet, out outgoing) {
	s.setHeader(p, out, s.cfg.SSRC, s.payload.media)
	s.header.Marker, s.header.Padding, s.header.PaddingSize = false, true, 1
	s.number(int(s.header.PaddingSize))
	s.wrote(s.cfg.Writer.WriteRTP(&s.header, nil))
}

// change makes the packet's layer the one that is sent, from this packet on.
func (s *Slot) change(p *Packet, in *incoming) bool {
	l := p.layer
	i := slices.Index(s.formats, l.format)
	if i < 0 {
		return false
	}
	if s.rewriter.sent == nil {
		s.rewriter = newSlotStream(s.cfg.Kind)
	}
	payload := payloadTypes{media: s.cfg.Codecs[i].PayloadType, rtx: s.cfg.Codecs[i].RTXPayloadType, red: s.redPayloadType()}
	s.rewriter.begin(l.number, payload, in, s.elapsedTicks(l, in.timestamp, p.arrived))
	s.payload = payload
	s.temporal.begin(p.sequence)
	if p.described {
		s.targets().begin()
	}
	if old := s.current; old != nil && old != l {
		old.removeSlot(s)
	}
	s.current = l
	return true
}

// elapsedTicks is the time from the newest packet of the stream to the first
// one of another layer, as the two layers' clocks have it. Where that differs
// much from the time between their arrivals a clock was wrong, and arrival
// counts. In any case the time moves forward.
func (s *Slot) elapsedTicks(l *Layer, timestamp uint32, arrived time.Time) uint32 {
	const (
		least = time.Millisecond
		slack = 500 * time.Millisecond
	)
	if s.newest.IsZero() {
		return 0
	}
	sampled := l.clock.sampled(timestamp)
	elapsed, between := sampled.Sub(s.newest), arrived.Sub(s.newestArrived)
	if (elapsed - between).Abs() > slack {
		elapsed = between
	}
	elapsed = max(elapsed, least)
	s.newest, s.newestArrived = sampled, arrived
	return ticks(elapsed, l.clock.rate)
}

// setHeader fills the slot's header. Of the publisher's extensions those that are passed on get the subscriber's ids; contributing
// sources are not carried over.
func (s *Slot) setHeader(p *Packet, out outgoing, ssrc uint32, payloadType uint8) {
	extensions := s.header.Extensions[:0]
	s.header = rtp.Header{
		Version:        2,
		Marker:         p.header.marker || s.targeting.ends(p),
		PayloadType:    payloadType,
		SequenceNumber: out.sequence,
		Timestamp:      out.timestamp,
		SSRC:           ssrc,
		Extensions:     extensions,
	}
	if at := p.header.descriptor; p.described && s.cfg.DescriptorID != 0 && !out.filler {
		// It is first because, if it is long, it decides on the form of all.
		described := p.buffer[at.at : at.at+at.length]
		binary.BigEndian.PutUint16(described[1:], out.frame)
		_ = s.header.SetExtension(s.cfg.DescriptorID, described) // An id of 1 to 14 with 1 to 255 bytes is never refused.
	}
	for i, id := range s.cfg.Passed {
		if at := p.header.passed[i]; id != 0 && at.length > 0 {
			_ = s.header.SetExtension(id, p.buffer[at.at:at.at+at.length]) // An id of 1 to 14 with 1 to 16 bytes is never refused.
		}
	}
}

// wireOverhead is what a packet takes beside its payload: RTP header and
// transport-wide number 20, SRTP's tag 16, UDP and IPv4 28.
const wireOverhead = 64

// number puts the packet's place on its transport into the header.
func (s *Slot) number(payloadBytes int) {
	if s.cfg.Path == nil || s.cfg.TransportSequenceID == 0 {
		return
	}
	binary.BigEndian.PutUint16(s.transport[:], s.cfg.Path.Next(payloadBytes+wireOverhead))
	// An id of 1 to 14 with two bytes is never refused.
	_ = s.header.SetExtension(s.cfg.TransportSequenceID, s.transport[:])
}

// wrote counts the outcome of one write.
func (s *Slot) wrote(n int, err error) bool {
	stats := &s.room.stats
	switch {
	case err == nil && n == 0:
		return false // the transport is not up
	case err == nil:
		shard := &stats.shards[s.cfg.Shard]
		shard.egressPackets.Add(1)
		shard.egressBytes.Add(uint64(n))
		return true
	case errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed):
		return false // the subscriber is going; its slot is about to be closed
	default:
		stats.writeErrors.Add(1)
		return false
	}
}

// resend writes a packet once more as RFC 4588 has it: with another SSRC and payload type, and the original sequence number before
// the payload.
func (s *Slot) resend(p *Packet, from origin, sequence uint16) bool {
	in := p.incoming()
	out := from.segment.apply(&in, sequence, from.place.picture)
	payload := p.payload()
	p.picture.patch(payload, out.pictureID, out.tl0)
	payload = append(binary.BigEndian.AppendUint16(s.room.scratch[:0], sequence), payload...)
	s.room.scratch = payload
	out.sequence = s.rtxSequence
	s.rtxSequence++
	s.setHeader(p, out, s.cfg.RTXSSRC, from.segment.payload.rtx)
	s.number(len(payload))
	n, err := s.cfg.Writer.WriteRTP(&s.header, payload)
	return s.wrote(n, err)
}

// targets is the slot's choice between the decode targets of what it shows.
func (s *Slot) targets() *targeting {
	if s.targeting == nil {
		s.targeting = &targeting{target: noTarget, goal: noTarget}
	}
	return s.targeting
}

func (p *Packet) empty() bool { return p.header.payloadStart == p.header.payloadEnd }

func (p *Packet) incoming() incoming {
	return incoming{
		sequence:  p.sequence,
		timestamp: p.header.timestamp,
		pictureID: p.picture.pictureID,
		tl0:       p.picture.tl0,
		frame:     p.frame.Number,
		empty:     p.empty(),
		gapless:   p.layer.codec == codecVP8,
	}
}
