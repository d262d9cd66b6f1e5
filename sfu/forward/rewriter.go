package forward

type incoming struct {
	sequence  uint32 // extended
	timestamp uint32
	pictureID uint16 // of VP8; 0: none
	tl0       uint8
	frame     uint16
	empty     bool // the numbers close over it
	dropped   bool // likewise
	gapless   bool // the picture numbers close over dropped ones, too
}

type outgoing struct {
	sequence  uint16
	timestamp uint32
	pictureID uint16
	tl0       uint8
	frame     uint16
	filler    bool // takes the number that a dropped packet left free
}

type origin struct {
	segment  *segment
	sequence uint32 // incoming
	place    *sentPacket
}

type payloadTypes struct{ media, rtx, red uint8 }

const (
	keptSegments = 8  // older ones are not sent again
	keptShifts   = 16 // swallowed packets of a reordering window
)

// segment is a stretch of the stream from one layer.
type segment struct {
	layer        uint64
	payload      payloadTypes
	timestampAdd uint32
	tl0Add       uint8
	frameAdd     uint16

	highest uint32 // incoming
	// shifts are added to numbers from an incoming one on; each swallowed packet takes one off.
	shifts     [keptShifts]shift
	shiftCount int
	dropped    uint32 // the last dropped picture plus one; 0: none
}

type shift struct {
	from, add uint32
	picture   uint16
}

// shiftFor is nil for what is too far back.
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
	case last.from == p.sequence:
		*last = next
	case s.shiftCount == keptShifts:
		copy(s.shifts[:], s.shifts[1:])
		s.shifts[keptShifts-1] = next
	default:
		s.shifts[s.shiftCount] = next
		s.shiftCount++
	}
}

// Each shift but the first follows as many swallowed packets as it takes off.
func (s *segment) swallowed(sequence uint32) bool {
	for i := s.shiftCount - 1; i > 0 && int32(sequence-s.shifts[i].from) < 0; i-- {
		if taken := s.shifts[i-1].add - s.shifts[i].add; int32(sequence-s.shifts[i].from+taken) >= 0 {
			return true
		}
	}
	return false
}

// rewriter joins layers into one RTP stream, and remembers what went out under which number.
type rewriter struct {
	segments [keptSegments]segment
	count    uint32 // the present one is count-1

	highest   uint32 // extended
	timestamp uint32
	pictureID uint16
	tl0       uint8
	frame     uint16

	sent []sentPacket // by outgoing number; a power of two
}

type sentPacket struct {
	out     uint32 // extended: an old entry differs
	in      uint32 // 0: filler
	again   uint32 // last resent, in ms of the caller's clock; 0: never
	segment uint16 // its number's low bits
	picture uint16 // added to the picture's number
}

// memory, a power of two, is how many packets a NACK can find.
func newRewriter(sequence uint16, timestamp uint32, memory int) rewriter {
	return rewriter{
		highest:   1<<16 | uint32(sequence), // 0 in sent is empty
		timestamp: timestamp,
		sent:      make([]sentPacket, memory),
	}
}

// begin switches to a layer whose first packet p was sampled elapsedTicks after the newest.
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

// rewrite is false for what is not sent. A late dropped packet makes a filler.
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
	// By the outgoing number: a packet that padding overtook is late, but still the newest.
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

func (r *rewriter) ahead(sequence uint32) bool {
	return int32(sequence-r.segments[(r.count-1)%keptSegments].highest) > 0
}

func (s *segment) apply(p *incoming, sequence, pictureAdd uint16) outgoing {
	return outgoing{
		sequence:  sequence,
		timestamp: p.timestamp + s.timestampAdd,
		pictureID: p.pictureID + pictureAdd,
		tl0:       p.tl0 + s.tl0Add,
		frame:     p.frame + s.frameAdd,
	}
}

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

// forget leaves the numbers: none may be sealed twice.
func (r *rewriter) forget() {
	for i := range r.sent {
		r.sent[i].segment = uint16(r.count) - keptSegments - 1
	}
}

func (r *rewriter) outgoingTimestamp(incoming uint32) uint32 {
	return incoming + r.segments[(r.count-1)%keptSegments].timestampAdd
}
