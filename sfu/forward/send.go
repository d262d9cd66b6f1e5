package forward

import (
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"github.com/holdfast-rtc/holdfast/sfu/forward/renumber"
	"github.com/holdfast-rtc/holdfast/sfu/forward/rtptime"

	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

func (s *Slot) forwardPaced(p *Packet) {
	if s.sub.budget == 0 && len(s.sub.pace.queue) == 0 {
		s.forward(p)
		return
	}
	q := &s.sub.pace
	if len(q.queue) == 0 {
		h := &s.room.pacing
		h.subs = append(h.subs, s.sub)
		if len(h.subs) == 1 {
			h.timer.Reset(0)
		}
	}
	p.retain()
	q.queue = append(q.queue, paced{slot: s, packet: p, since: time.Now()})
}

func (s *Slot) chargePace(bytes int) {
	if s.sub.budget != 0 && s.cfg.Kind == KindVideo {
		s.sub.pace.bytes -= float64(bytes)
	}
}

// forward sends a packet of the present layer, and begins the target with the target's keyframe. It allocates nothing.
func (s *Slot) forward(p *Packet) {
	if !s.ready {
		return
	}
	in := p.incoming()
	if p.layer == s.current {
		s.write(p, &in)
		return
	}
	if p.layer != s.target || in.Empty || !p.picture.Keyframe || !s.switchTo(p, &in) {
		return
	}
	s.write(p, &in)
	// If the keyframe came late or is replayed, the packets that follow it are in the cache already.
	for sequence := p.sequence + 1; sequence <= p.layer.tracker.Highest; sequence++ {
		if next := p.layer.cache.get(sequence); next != nil {
			s.forwardPaced(next)
		}
	}
}

func (s *Slot) write(p *Packet, in *renumber.Incoming) {
	if ahead := s.rewriter.Ahead(p.sequence); p.described {
		in.Dropped = s.filter.described().Drops(&p.frame, p.header.Timestamp, p.arrived, ahead, s.filter.spatial, s.filter.temporal.Wanted)
	} else {
		in.Dropped = s.filter.temporal.Drops(&p.picture, p.sequence, p.arrived, ahead)
	}
	out, ok := s.rewriter.Rewrite(in)
	if !ok {
		return
	}
	if out.Filler {
		s.writeFiller(p, out)
		return
	}
	if sampled := p.layer.clock.Sampled(in.Timestamp); sampled.After(s.newest) {
		s.newest, s.newestArrived = sampled, p.arrived
	}
	payload, payloadType := p.payloadFor(s.currentPayloadTypes(p.arrived))
	p.picture.Patch(payload, out.PictureID, out.TL0)
	s.setHeader(p, out, s.cfg.SSRC, payloadType)
	s.header.Padding, s.header.PaddingSize = p.padding > 0, p.padding
	s.addTransportNumber(len(payload) + int(p.padding))
	n, err := s.cfg.Writer.WriteRTP(&s.header, payload)
	if s.countWrite(n, err) {
		s.room.stats.shards[s.cfg.Shard].forwarded.Add(1)
		s.report.sent(len(payload))
		s.chargePace(n)
		if p.picture.Keyframe && s.cfg.Kind == KindVideo {
			s.keyframes.sent++
			s.keyframes.sentAt = p.arrived
		}
	}
}

func (s *Slot) writeFiller(p *Packet, out renumber.Outgoing) {
	s.setHeader(p, out, s.cfg.SSRC, s.payload.Media)
	s.header.Marker, s.header.Padding, s.header.PaddingSize = false, true, 1
	s.addTransportNumber(int(s.header.PaddingSize))
	s.countWrite(s.cfg.Writer.WriteRTP(&s.header, nil))
}

func (s *Slot) writePadding() {
	payload := s.room.scratch[:probePadding]
	clear(payload)
	payload[probePadding-1] = probePadding
	s.header = rtp.Header{
		Version: 2, Padding: true, PayloadType: s.rtxPayloadType(), SequenceNumber: s.rtxSequence,
		Timestamp: s.rewriter.Timestamp, SSRC: s.cfg.RTXSSRC, Extensions: s.header.Extensions[:0],
	}
	s.rtxSequence++
	s.addTransportNumber(len(payload))
	if n, err := s.cfg.Writer.WriteRTP(&s.header, payload); s.countWrite(n, err) {
		s.room.stats.probes.Add(1)
	}
}

func (s *Slot) switchTo(p *Packet, in *renumber.Incoming) bool {
	l := p.layer
	i := slices.Index(s.formats, l.format)
	if i < 0 {
		return false
	}
	if !s.rewriter.Begun() {
		s.rewriter = newSlotStream(s.cfg.Kind)
	}
	payload := renumber.PayloadTypes{Media: s.cfg.Codecs[i].PayloadType, RTX: s.cfg.Codecs[i].RTXPayloadType, RED: s.redPayloadType()}
	s.rewriter.Begin(l.number, payload, in, s.elapsedTicks(l, in.Timestamp, p.arrived))
	s.align(l)
	s.payload = payload
	s.filter.temporal.Begin(p.sequence)
	if p.described {
		s.filter.described().Begin()
	}
	if old := s.current; old != nil && old != l {
		old.removeSlot(s)
	}
	s.current = l
	return true
}

// newSlotStream begins at random numbers (RFC 3550 section 5.1). The sequence number is in the lower half, so that the loss of the first packets
// cannot mislead a receiver's roll-over counter.
func newSlotStream(kind Kind) renumber.Rewriter {
	return renumber.New(uint16(rand.Uint32N(1<<15)), rand.Uint32(), memoryOf(kind))
}

func memoryOf(kind Kind) int {
	if kind == KindVideo {
		return videoMemoryPackets
	}
	return audioMemoryPackets
}

// elapsedTicks returns the time between the newest packet that was sent and one of another layer. If the publishers' clocks and the arrival of
// the packets disagree, a clock was wrong, and arrival counts.
func (s *Slot) elapsedTicks(l *Layer, timestamp uint32, arrived time.Time) uint32 {
	const (
		least = time.Millisecond
		slack = 500 * time.Millisecond
	)
	if s.newest.IsZero() {
		return 0
	}
	sampled := l.clock.Sampled(timestamp)
	elapsed, between := sampled.Sub(s.newest), arrived.Sub(s.newestArrived)
	if (elapsed - between).Abs() > slack {
		elapsed = between
	}
	elapsed = max(elapsed, least)
	s.newest, s.newestArrived = sampled, arrived
	return rtptime.Ticks(elapsed, l.clock.Rate)
}

func (s *Slot) setHeader(p *Packet, out renumber.Outgoing, ssrc uint32, payloadType uint8) {
	extensions := s.header.Extensions[:0]
	s.header = rtp.Header{
		Version:        2,
		Marker:         p.header.Marker || p.described && s.filter.targets.Ends(&p.frame),
		PayloadType:    payloadType,
		SequenceNumber: out.Sequence,
		Timestamp:      out.Timestamp,
		SSRC:           ssrc,
		Extensions:     extensions,
	}
	if at := p.header.Descriptor; p.described && s.cfg.DescriptorID != 0 && !out.Filler {
		// The descriptor goes first, because a long extension decides the form of all.
		described := p.buffer[at.At : at.At+at.Length]
		binary.BigEndian.PutUint16(described[1:], out.Frame)
		// It is never refused: ids are 1 to 14, lengths 1 to 255.
		_ = s.header.SetExtension(s.cfg.DescriptorID, described)
	}
	for i, id := range s.cfg.Passed {
		if at := p.header.Passed[i]; id != 0 && at.Length > 0 {
			// It is never refused: lengths are 1 to 16.
			_ = s.header.SetExtension(id, p.buffer[at.At:at.At+at.Length])
		}
	}
}

// wireOverhead is what is added to a payload: 20 bytes of RTP header and transport number, 16 of SRTP's tag, 28 of UDP and IPv4.
const wireOverhead = 64

func (s *Slot) addTransportNumber(payloadBytes int) {
	if s.cfg.Path == nil || s.cfg.TransportSequenceID == 0 {
		return
	}
	binary.BigEndian.PutUint16(s.transport[:], s.cfg.Path.Next(payloadBytes+wireOverhead))
	// It is never refused: the id is 1 to 14.
	_ = s.header.SetExtension(s.cfg.TransportSequenceID, s.transport[:])
}

func (s *Slot) countWrite(n int, err error) bool {
	stats := &s.room.stats
	switch {
	case err == nil && n == 0:
		return false
	case err == nil:
		shard := &stats.shards[s.cfg.Shard]
		shard.egressPackets.Add(1)
		shard.egressBytes.Add(uint64(n))
		return true
	case errors.Is(err, io.ErrClosedPipe) || errors.Is(err, net.ErrClosed):
		return false
	default:
		stats.writeErrors.Add(1)
		return false
	}
}

// currentPayloadTypes leaves out redundancy for narrow paths. Other paths get it after losses, or always if they cannot ask for packets again.
func (s *Slot) currentPayloadTypes(arrived time.Time) renumber.PayloadTypes {
	to := s.payload
	if to.RED != 0 && (s.sub.budget != 0 || s.cfg.Repeat != nil && arrived.After(s.resends.losses.until)) {
		to.RED = 0
	}
	return to
}

func (s *Slot) retransmit(sequenceNumbers []uint16, now time.Time) {
	if s.closed || !s.ready || !s.rewriter.Begun() {
		return
	}
	if s.resends.origin.IsZero() {
		// The origin lies before now, so that no time is 0.
		s.resends.origin = now.Add(-time.Hour)
	}
	at := uint32(now.Sub(s.resends.origin).Milliseconds())
	sub := s.room.members.subscriber(s.cfg.Peer)
	guard := uint32(sub.resendAfter().Milliseconds())
	for _, sequence := range sequenceNumbers {
		from, ok := s.rewriter.Lookup(sequence)
		if ok && from.Place.Again != 0 && at-from.Place.Again < guard {
			continue
		}
		if !ok || !s.resends.budget.take(now, sub.budget) || !s.resendOrRepeat(from, sequence) {
			s.room.stats.retransmitMisses.Add(1)
			continue
		}
		if from.Place.Again == 0 {
			s.resends.losses.note(now)
		}
		from.Place.Again = at
		s.room.stats.retransmitted.Add(1)
	}
}

// resendOrRepeat sends a packet again. Without RTX it sends the very same bytes: others under the same number would reuse the SRTP nonce.
func (s *Slot) resendOrRepeat(from renumber.Origin, sequence uint16) bool {
	if s.cfg.RTXSSRC == 0 || from.Segment.Payload.RTX == 0 {
		if s.cfg.Repeat == nil {
			return false
		}
		n, err := s.cfg.Repeat(sequence)
		return s.countWrite(n, err)
	}
	layer := s.room.members.layers[from.Segment.Layer]
	if layer == nil {
		return false
	}
	p := layer.cache.get(from.Sequence)
	return p != nil && s.resend(p, from, sequence)
}

// resend sends a packet as RTX: the original sequence number goes before the payload (RFC 4588).
func (s *Slot) resend(p *Packet, from renumber.Origin, sequence uint16) bool {
	in := p.incoming()
	out := from.Segment.Apply(&in, sequence, from.Place.Picture)
	payload := p.payload()
	p.picture.Patch(payload, out.PictureID, out.TL0)
	payload = append(binary.BigEndian.AppendUint16(s.room.scratch[:0], sequence), payload...)
	s.room.scratch = payload
	out.Sequence = s.rtxSequence
	s.rtxSequence++
	s.setHeader(p, out, s.cfg.RTXSSRC, from.Segment.Payload.RTX)
	s.addTransportNumber(len(payload))
	n, err := s.cfg.Writer.WriteRTP(&s.header, payload)
	return s.countWrite(n, err)
}

const (
	reportInterval = time.Second
	// The first report comes early, because receivers need it to play sound and picture in step.
	firstReport = 200 * time.Millisecond
	// RTCP allows so many names in one packet.
	maxNames = 31
)

type slotReport struct {
	packets, octets uint32
	reported        uint32
	next            time.Time
}

func (r *slotReport) sent(octets int) {
	r.packets++
	r.octets += uint32(octets)
}

func (s *Slot) reportDue(now time.Time, sooner time.Duration) bool {
	r := &s.report
	if !s.ready || s.current == nil || s.cfg.WriteRTCP == nil || r.packets == r.reported {
		return false
	}
	if r.next.IsZero() {
		r.next = now.Add(firstReport)
	}
	return !now.Add(sooner).Before(r.next)
}

func (s *Slot) senderReport(now time.Time) *rtcp.SenderReport {
	r := &s.report
	r.next, r.reported = now.Add(reportInterval), r.packets
	wall := s.room.wall.At(now)
	return &rtcp.SenderReport{
		SSRC:        s.cfg.SSRC,
		NTPTime:     rtptime.NTP(wall),
		RTPTime:     s.rewriter.OutgoingTimestamp(s.current.clock.Timestamp(wall)),
		PacketCount: r.packets,
		OctetCount:  r.octets,
	}
}
