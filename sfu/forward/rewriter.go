package forward

// incoming is one packet of a layer as the rewriter sees it.
type incoming struct {
	sequence  uint32 // extended, without great gaps: see sequenceTracker
	timestamp uint32
	pictureID uint16 // VP8, 0 when absent
	tl0       uint8
	empty     bool // padding only: swallowed, and the sequence closes over it
}

// outgoing is what the rewriter makes of it.
type outgoing struct {
	sequence  uint16
	timestamp uint32
	pictureID uint16
	tl0       uint8
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
	pictureAdd   uint16
	tl0Add       uint8

	highest uint32 // incoming sequence number
	// shifts say what to add to an incoming sequence number from a certain one
	// on, oldest first; each swallowed packet makes the sum one less. What is
	// before the first of them is from before the switch, or forgotten.
	shifts     [keptShifts]shift
	shiftCount int
}

type shift struct{ from, add uint32 }

// addFor finds the sum for a sequence number, false when it is too far back.
func (s *segment) addFor(sequence uint32) (uint32, bool) {
	for i := s.shiftCount - 1; i >= 0; i-- {
		if int32(sequence-s.shifts[i].from) >= 0 {
			return s.shifts[i].add, true
		}
	}
	return 0, false
}

func (s *segment) swallow(sequence uint32) {
	last := &s.shifts[s.shiftCount-1]
	next := shift{from: sequence + 1, add: last.add - 1}
	switch {
	case last.from == sequence: // nothing went out since the last one
		*last = next
	case s.shiftCount == keptShifts:
		copy(s.shifts[:], s.shifts[1:])
		s.shifts[keptShifts-1] = next
	default:
		s.shifts[s.shiftCount] = next
		s.shiftCount++
	}
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

	sent []sentPacket // a power of two; by outgoing sequence number
}

// sentPacket remembers no timestamp: the retransmission cache has the packet,
// and its segment says what to add.
type sentPacket struct {
	out     uint32 // extended, to tell what is left from an earlier turn
	in      uint32
	segment uint32
	again   uint32 // when it was sent again last, in milliseconds of the caller's clock; 0: never
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
		pictureAdd:   r.pictureID + 1 - p.pictureID,
		tl0Add:       r.tl0 + 1 - p.tl0,
		highest:      p.sequence - 1,
	}
	s.shifts[0] = shift{from: p.sequence, add: r.highest + 1 - p.sequence}
	s.shiftCount = 1
	r.count++
}

// rewrite places one packet of the present layer. It returns false for what is
// not to be written: padding, duplicates, and packets from before the switch or
// further back than it remembers.
func (r *rewriter) rewrite(p *incoming) (outgoing, bool) {
	if r.count == 0 {
		return outgoing{}, false
	}
	s := &r.segments[(r.count-1)%keptSegments]
	if p.empty {
		if int32(p.sequence-s.highest) > 0 {
			s.swallow(p.sequence)
			s.highest = p.sequence
		}
		return outgoing{}, false
	}
	add, ok := s.addFor(p.sequence)
	if !ok {
		return outgoing{}, false
	}
	extended := p.sequence + add
	place := &r.sent[extended&uint32(len(r.sent)-1)]
	// By the outgoing number, because a packet that was overtaken by padding
	// is late and still the newest of the stream.
	newest := int32(extended-r.highest) > 0
	if !newest && (place.out == extended || r.highest-extended >= uint32(len(r.sent))) {
		return outgoing{}, false
	}
	*place = sentPacket{out: extended, in: p.sequence, segment: r.count - 1}
	out := s.apply(p, uint16(extended))
	if newest {
		r.highest = extended
		r.timestamp, r.pictureID, r.tl0 = out.timestamp, out.pictureID, out.tl0
	}
	if int32(p.sequence-s.highest) > 0 {
		s.highest = p.sequence
	}
	return out, true
}

// apply gives a packet of this segment the numbers of the stream.
func (s *segment) apply(p *incoming, sequence uint16) outgoing {
	return outgoing{
		sequence:  sequence,
		timestamp: p.timestamp + s.timestampAdd,
		pictureID: p.pictureID + s.pictureAdd,
		tl0:       p.tl0 + s.tl0Add,
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
	if p.out != extended || r.count-p.segment > keptSegments {
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
