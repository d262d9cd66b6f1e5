package forward

// incoming is one packet of a layer as the rewriter sees it.
type incoming struct {
	sequence  uint32 // extended, without great gaps: see sequenceTracker
	timestamp uint32
	pictureID uint16 // VP8, 0 when absent
	tl0       uint8
	frame     uint16 // of the dependency descriptor, any without
	empty     bool   // padding only: swallowed, and the sequence closes over it
	dropped   bool   // left out, as empty ones are
	gapless   bool   // the numbers of pictures must go on by one: close over those that are dropped
}

// outgoing is what the rewriter makes of it.
type outgoing struct {
	sequence  uint16
	timestamp uint32
	pictureID uint16
	tl0       uint8
	frame     uint16
	filler    bool // only the number is to be written: it is that of a dropped packet, and has been left free
}

// origin says which packet of which layer went out under a sequence number.
type origin struct {
	segment  *segment
	sequence uint32 // incoming
	place    *sentPacket
}

// payloadTypes are what a subscriber negotiated for the codec of a segment.
type payloadTypes struct{ media, rtx, red uint8 }

const (
	keptSegments = 8  // switches within the memory of a slot; older packets are not sent again
	keptShifts   = 16 // swallowed packets within the reordering window of one segment
)

// segment is a stretch of the outgoing stream that comes from one layer.
type segment struct {
	layer        uint64
	payload      payloadTypes
	timestampAdd uint32
	tl0Add       uint8
	frameAdd     uint16

	highest uint32 // incoming sequence number
	// shifts say what to add to the numbers of an incoming packet from a certain one
	// on, oldest first; each swallowed packet makes the sum one less. What is
	// before the first of them is from before the switch, or forgotten.
	shifts     [keptShifts]shift
	shiftCount int
	dropped    uint32 // number of the picture that was dropped last, plus one; 0: none
}

// shift is what is added to sequence numbers and numbers of pictures.
type shift struct {
	from, add uint32
	picture   uint16
}

// shiftFor finds what to add to a sequence number, nil when it is too far back.
func (s *segment) shiftFor(sequence uint32) *shift {
	for i := s.shiftCount - 1; i >= 0; i-- {
		if int32(sequence-s.shifts[i].from) >= 0 {
			return &s.shifts[i]
		}
	}
	return nil
}

func (s *segment) swallow(p *incoming) {
	last := &s.shifts[s.shiftCount-1]
	next := shift{from: p.sequence + 1, add: last.add - 1, picture: last.picture}
	if picture := uint32(p.pictureID) + 1; p.dropped && p.gapless && picture != s.dropped {
		next.picture--
		s.dropped = picture
	}
	switch {
	case last.from == p.sequence: // nothing went out since the last one
		*last = next
	case s.shiftCount == keptShifts:
		copy(s.shifts[:], s.shifts[1:])
		s.shifts[keptShifts-1] = next
	default:
		s.shifts[s.shiftCount] = next
		s.shiftCount++
	}
}

// swallowed reports whether a packet was swallowed already: each shift but the first is behind as many as it takes off.
func (s *segment) swallowed(sequence uint32) bool {
	for i := s.shiftCount - 1; i > 0 && int32(sequence-s.shifts[i].from) < 0; i-- {
		if taken := s.shifts[i-1].add - s.shifts[i].add; int32(sequence-s.shifts[i].from+taken) >= 0 {
			return true
		}
	}
	return false
}

// rewriter joins stretches of different layers into one continuous RTP stream,
// and remembers what went out under which number, to answer a NACK. It is a
// value without clock or input: the caller says by how many ticks the time moved
// at a switch.
type rewriter struct {
	segments [keptSegments]segment
	count    uint32 // segments so far; the present one is count-1

	highest   uint32 // extended outgoing sequence number
	timestamp uint32 // of the newest packet
	pictureID uint16
	tl0       uint8
	frame     uint16 // the highest

	sent []sentPacket // a power of two; by outgoing sequence number
}

// sentPacket remembers no timestamp: the retransmission cache has the packet,
// and its segment says what to add.
type sentPacket struct {
	out     uint32 // extended, to tell what is left from an earlier turn
	in      uint32 // 0 for a filler
	again   uint32 // when it was sent again last, in milliseconds of the caller's clock; 0: never
	segment uint16 // the low bits of its number
	picture uint16 // what was added to the number of its picture
}

// newRewriter begins a stream after the given sequence number and timestamp.
// memory, a power of two, is the number of packets that can be asked for again.
func newRewriter(sequence uint16, timestamp uint32, memory int) rewriter {
	return rewriter{
		highest:   1<<16 | uint32(sequence), // 0 in sent means empty
		timestamp: timestamp,
		sent:      make([]sentPacket, memory),
	}
}

// begin lets the stream go on with another layer: p is the first packet of it
// that is written, elapsedTicks how much later it was sampled than the newest
// packet so far.
func (r *rewriter) begin(layer uint64, payload payloadTypes, p *incoming, elapsedTicks uint32) {
	s := &r.segments[r.count%keptSegments]
	*s = segment{
		layer:        layer,
		payload:      payload,
		timestampAdd: r.timestamp + elapsedTicks - p.timestamp,
		tl0Add:       r.tl0 + 1 - p.tl0,
		frameAdd:     r.frame + 1 - p.frame,
		highest:      p.sequence - 1,
	}
	s.shifts[0] = shift{from: p.sequence, add: r.highest + 1 - p.sequence, picture: r.pictureID + 1 - p.pictureID}
	s.shiftCount = 1
	r.count++
}

// rewrite places one packet of the present layer. It returns false for what is
// not to be written: padding, dropped packets, duplicates, and packets from before the switch or
// further back than it remembers. A dropped packet that comes late makes a filler.
func (r *rewriter) rewrite(p *incoming) (outgoing, bool) {
	if r.count == 0 {
		return outgoing{}, false
	}
	s := &r.segments[(r.count-1)%keptSegments]
	ahead := r.ahead(p.sequence)
	if (p.empty || p.dropped) && ahead {
		s.swallow(p)
		s.highest = p.sequence
	}
	if p.empty || p.dropped && ahead {
		return outgoing{}, false
	}
	shift := s.shiftFor(p.sequence)
	if shift == nil || p.dropped && s.swallowed(p.sequence) {
		return outgoing{}, false
	}
	extended := p.sequence + shift.add
	place := &r.sent[extended&uint32(len(r.sent)-1)]
	// By the outgoing number, because a packet that was overtaken by padding
	// is late and still the newest of the stream.
	newest := int32(extended-r.highest) > 0
	if !newest && (place.out == extended || r.highest-extended >= uint32(len(r.sent))) {
		return outgoing{}, false
	}
	*place = sentPacket{out: extended, in: p.sequence, segment: uint16(r.count - 1), picture: shift.picture}
	if newest {
		r.highest = extended
	}
	out := s.apply(p, uint16(extended), shift.picture)
	if p.dropped {
		place.in, out.filler = 0, true
		return out, true
	}
	if newest {
		r.timestamp, r.pictureID, r.tl0 = out.timestamp, out.pictureID, out.tl0
		if int16(out.frame-r.frame) > 0 {
			r.frame = out.frame
		}
	}
	if ahead {
		s.highest = p.sequence
	}
	return out, true
}

// ahead reports whether a packet of the present layer is beyond all before.
func (r *rewriter) ahead(sequence uint32) bool {
	return int32(sequence-r.segments[(r.count-1)%keptSegments].highest) > 0
}

// apply gives a packet of this segment the numbers of the stream.
func (s *segment) apply(p *incoming, sequence, pictureAdd uint16) outgoing {
	return outgoing{
		sequence:  sequence,
		timestamp: p.timestamp + s.timestampAdd,
		pictureID: p.pictureID + pictureAdd,
		tl0:       p.tl0 + s.tl0Add,
		frame:     p.frame + s.frameAdd,
	}
}

// lookup finds what was written under an outgoing sequence number.
func (r *rewriter) lookup(sequence uint16) (origin, bool) {
	back := uint16(r.highest) - sequence
	extended := r.highest - uint32(back)
	if int(back) >= len(r.sent) {
		return origin{}, false
	}
	p := &r.sent[extended&uint32(len(r.sent)-1)]
	if p.out != extended || uint16(r.count)-p.segment > keptSegments {
		return origin{}, false
	}
	return origin{segment: &r.segments[p.segment%keptSegments], sequence: p.in, place: p}, true
}

// forget lets nothing be asked for again that was sent so far.
func (r *rewriter) forget() { clear(r.sent) }

// outgoingTimestamp turns a timestamp of the present layer into one of the stream.
func (r *rewriter) outgoingTimestamp(incoming uint32) uint32 {
	return incoming + r.segments[(r.count-1)%keptSegments].timestampAdd
}
