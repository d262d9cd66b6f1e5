package renumber

// Incoming is the numbers of a publisher's packet.
type Incoming struct {
	// Sequence is the extended number.
	Sequence  uint32
	Timestamp uint32
	// PictureID and TL0 are the counters of a VP8 or VP9 payload descriptor; 0 if it has none.
	PictureID uint16
	TL0       uint8
	// Frame is the frame number of a dependency descriptor.
	Frame uint16
	// The outgoing sequence numbers close over packets that are empty, and over those that the slot drops.
	Empty, Dropped bool
	// Gapless lets the picture numbers close over dropped pictures, too.
	Gapless bool
}

// Outgoing is the numbers under which the packet is sent.
type Outgoing struct {
	Sequence  uint16
	Timestamp uint32
	PictureID uint16
	TL0       uint8
	Frame     uint16
	// Filler is a packet of padding. It takes the number that a late dropped packet left free.
	Filler bool
}

// Origin is where a packet that was sent came from. Sequence is its incoming number.
type Origin struct {
	Segment  *Segment
	Sequence uint32
	Place    *SentPacket
}

// PayloadTypes are those of one segment at the receiver; 0 is none.
type PayloadTypes struct{ Media, RTX, RED uint8 }

const (
	// Packets of older segments are not sent again.
	keptSegments = 8
	// The swallowed packets among which late packets still find their number.
	keptShifts = 16
)

// Segment is a stretch of the stream that came from one layer. Layer is that layer's number.
type Segment struct {
	Layer        uint64
	Payload      PayloadTypes
	timestampAdd uint32
	tl0Add       uint8
	frameAdd     uint16

	// highest is the highest incoming number so far.
	highest uint32
	// shifts say what is added to the numbers from an incoming one on; each swallowed packet takes one off.
	shifts     [keptShifts]shift
	shiftCount int
	// dropped is the number of the last dropped picture plus one; 0 if there was none.
	dropped uint32
}

type shift struct {
	from, add uint32
	picture   uint16
}

// shiftFor returns nil for a packet from before the oldest shift.
func (s *Segment) shiftFor(sequence uint32) *shift {
	for i := s.shiftCount - 1; i >= 0; i-- {
		if int32(sequence-s.shifts[i].from) >= 0 {
			return &s.shifts[i]
		}
	}
	return nil
}

// swallow closes the outgoing numbers over a packet that is not sent. All packets of a dropped picture take one off its number once.
func (s *Segment) swallow(p *Incoming) {
	last := &s.shifts[s.shiftCount-1]
	next := shift{from: p.Sequence + 1, add: last.add - 1, picture: last.picture}
	if picture := uint32(p.PictureID) + 1; p.Dropped && p.Gapless && picture != s.dropped {
		next.picture--
		s.dropped = picture
	}
	switch {
	case last.from == p.Sequence:
		*last = next
	case s.shiftCount == keptShifts:
		copy(s.shifts[:], s.shifts[1:])
		s.shifts[keptShifts-1] = next
	default:
		s.shifts[s.shiftCount] = next
		s.shiftCount++
	}
}

// swallowed reports whether an incoming number belongs to a packet over which the numbers closed. Each shift but the first stands right
// behind as many swallowed packets as it takes off.
func (s *Segment) swallowed(sequence uint32) bool {
	for i := s.shiftCount - 1; i > 0 && int32(sequence-s.shifts[i].from) < 0; i-- {
		if taken := s.shifts[i-1].add - s.shifts[i].add; int32(sequence-s.shifts[i].from+taken) >= 0 {
			return true
		}
	}
	return false
}

// Rewriter joins stretches of several layers into one RTP stream, and remembers what went out under which number. Begin it with New; the
// zero value has no stream. It allocates nothing after New.
type Rewriter struct {
	segments [keptSegments]Segment
	// count is how many segments began; the present one has the number count-1.
	count uint32

	// Highest and the fields below it are the numbers of the newest packet that was sent. Highest is extended.
	Highest   uint32
	Timestamp uint32
	pictureID uint16
	tl0       uint8
	Frame     uint16

	// sent is a ring by outgoing number; its length is a power of two.
	sent []SentPacket
}

// SentPacket is what is remembered of a packet that was sent.
type SentPacket struct {
	// out is the extended outgoing number, by which an entry from an earlier turn of the ring is told apart; in the incoming number, or 0
	// for a filler.
	out, in uint32
	// Again is when the packet was last sent again, in milliseconds of the caller's clock; 0: never.
	Again uint32
	// segment is the low bits of its segment's number.
	segment uint16
	// Picture was added to the number of the picture.
	Picture uint16
}

// New begins a stream behind a sequence number and a timestamp. memory, a power of two, is how many packets Lookup can find.
func New(sequence uint16, timestamp uint32, memory int) Rewriter {
	return Rewriter{
		Highest:   1<<16 | uint32(sequence), // 0 in sent is empty
		Timestamp: timestamp,
		sent:      make([]SentPacket, memory),
	}
}

// Begin begins a segment with the first packet p of a layer, which was sampled elapsedTicks after the newest packet that was sent.
func (r *Rewriter) Begin(layer uint64, payload PayloadTypes, p *Incoming, elapsedTicks uint32) {
	s := &r.segments[r.count%keptSegments]
	*s = Segment{
		Layer:        layer,
		Payload:      payload,
		timestampAdd: r.Timestamp + elapsedTicks - p.Timestamp,
		tl0Add:       r.tl0 + 1 - p.TL0,
		frameAdd:     r.Frame + 1 - p.Frame,
		highest:      p.Sequence - 1,
	}
	s.shifts[0] = shift{from: p.Sequence, add: r.Highest + 1 - p.Sequence, picture: r.pictureID + 1 - p.PictureID}
	s.shiftCount = 1
	r.count++
}

// Rewrite returns the outgoing numbers of a packet of the present segment, and false for a packet that is not sent. A dropped packet whose
// number cannot be closed any more, because later packets were sent, becomes a filler: else the receiver would ask for it until it gave up.
func (r *Rewriter) Rewrite(p *Incoming) (Outgoing, bool) {
	if r.count == 0 {
		return Outgoing{}, false
	}
	s := &r.segments[(r.count-1)%keptSegments]
	ahead := r.Ahead(p.Sequence)
	if (p.Empty || p.Dropped) && ahead {
		s.swallow(p)
		s.highest = p.Sequence
	}
	if p.Empty || p.Dropped && ahead {
		return Outgoing{}, false
	}
	shift := s.shiftFor(p.Sequence)
	if shift == nil || p.Dropped && s.swallowed(p.Sequence) {
		return Outgoing{}, false
	}
	extended := p.Sequence + shift.add
	place := &r.sent[extended&uint32(len(r.sent)-1)]
	// By the outgoing number: a packet that padding overtook is late, but still the newest.
	newest := int32(extended-r.Highest) > 0
	if !newest && (place.out == extended || r.Highest-extended >= uint32(len(r.sent))) {
		return Outgoing{}, false
	}
	*place = SentPacket{out: extended, in: p.Sequence, segment: uint16(r.count - 1), Picture: shift.picture}
	if newest {
		r.Highest = extended
	}
	out := s.Apply(p, uint16(extended), shift.picture)
	if p.Dropped {
		place.in, out.Filler = 0, true
		return out, true
	}
	if newest {
		r.Timestamp, r.pictureID, r.tl0 = out.Timestamp, out.PictureID, out.TL0
		if int16(out.Frame-r.Frame) > 0 {
			r.Frame = out.Frame
		}
	}
	if ahead {
		s.highest = p.Sequence
	}
	return out, true
}

// Ahead reports whether no later packet of the segment came before one with this incoming number.
func (r *Rewriter) Ahead(sequence uint32) bool {
	return int32(sequence-r.segments[(r.count-1)%keptSegments].highest) > 0
}

// Apply returns the numbers of a packet that is sent under a known sequence number.
func (s *Segment) Apply(p *Incoming, sequence, pictureAdd uint16) Outgoing {
	return Outgoing{
		Sequence:  sequence,
		Timestamp: p.Timestamp + s.timestampAdd,
		PictureID: p.PictureID + pictureAdd,
		TL0:       p.TL0 + s.tl0Add,
		Frame:     p.Frame + s.frameAdd,
	}
}

// Lookup finds the packet that was sent under a number, if it and its segment are still remembered.
func (r *Rewriter) Lookup(sequence uint16) (Origin, bool) {
	back := uint16(r.Highest) - sequence
	extended := r.Highest - uint32(back)
	if int(back) >= len(r.sent) {
		return Origin{}, false
	}
	p := &r.sent[extended&uint32(len(r.sent)-1)]
	if p.out != extended || uint16(r.count)-p.segment > keptSegments {
		return Origin{}, false
	}
	return Origin{Segment: &r.segments[p.segment%keptSegments], Sequence: p.in, Place: p}, true
}

// Forget makes Lookup find nothing of what was sent. It keeps the entries, so that Rewrite gives out no number twice: SRTP would use its
// nonce again.
func (r *Rewriter) Forget() {
	for i := range r.sent {
		r.sent[i].segment = uint16(r.count) - keptSegments - 1
	}
}

// OutgoingTimestamp rewrites a timestamp of the present segment's layer.
func (r *Rewriter) OutgoingTimestamp(incoming uint32) uint32 {
	return incoming + r.segments[(r.count-1)%keptSegments].timestampAdd
}

// Begun reports whether there is a stream: the zero Rewriter and an ended one have none.
func (r *Rewriter) Begun() bool { return r.sent != nil }

// End forgets what was sent, so that nothing is found any more.
func (r *Rewriter) End() { r.sent = nil }
