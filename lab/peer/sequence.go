package peer

// Loss is what the sequence numbers of RTP streams say.
type Loss struct {
	Expected   uint64 // from the first to the highest number
	Received   uint64 // different numbers that came, in whatever way
	Recovered  uint64 // of them by retransmission
	Late       uint64 // of them after a higher number, without being a known retransmission
	Duplicates uint64 // came again
	TooLate    uint64 // came so late that they stay lost
	Jumps      uint64 // breaks after which the counting began anew
}

// Lost is how many packets never came.
func (l Loss) Lost() uint64 { return l.Expected - l.Received }

// Add sums up.
func (l *Loss) Add(o Loss) {
	l.Expected += o.Expected
	l.Received += o.Received
	l.Recovered += o.Recovered
	l.Late += o.Late
	l.Duplicates += o.Duplicates
	l.TooLate += o.TooLate
	l.Jumps += o.Jumps
}

const (
	// sequenceWindow is how many numbers back a packet still counts: 3 s of the largest layer.
	sequenceWindow = 1024
	// maxJump is RFC 3550's MAX_DROPOUT; past it the stream has begun anew.
	maxJump = 3000
)

// sequence counts the loss of one RTP stream (RFC 3550 appendix A.3). It remembers what came: neither duplicates nor
// retransmissions hide loss.
type sequence struct {
	began          bool
	first, highest uint64 // extended
	seen           [sequenceWindow / 64]uint64
	received       uint64 // since first
	sum            Loss   // without what is since first
}

// add counts one packet. retransmitted says that it came by RTX.
func (s *sequence) add(number uint16, retransmitted bool) {
	if !s.began {
		s.begin(number)
		return
	}
	step := int64(int16(number - uint16(s.highest)))
	at := s.highest + uint64(step)
	switch {
	case step > maxJump, step < -maxJump:
		s.sum = s.total()
		s.sum.Jumps++
		s.begin(number)
		return
	case step > 0:
		s.forget(s.highest+1, at)
		s.highest = at
	case -step >= sequenceWindow:
		s.sum.TooLate++
		return
	case s.has(at):
		s.sum.Duplicates++
		return
	}
	s.mark(at)
	s.received++
	s.first = min(s.first, at)
	switch {
	case retransmitted:
		s.sum.Recovered++
	case step < 0:
		s.sum.Late++
	}
}

// begin starts far enough from zero for what comes before it.
func (s *sequence) begin(number uint16) {
	s.began = true
	s.first = 1<<16 | uint64(number)
	s.highest = s.first
	s.seen = [sequenceWindow / 64]uint64{}
	s.mark(s.first)
	s.received = 1
}

func (s *sequence) total() Loss {
	all := s.sum
	if s.began {
		all.Expected += s.highest - s.first + 1
		all.Received += s.received
	}
	return all
}

func (s *sequence) has(at uint64) bool {
	return s.seen[at%sequenceWindow/64]&(1<<(at%64)) != 0
}

func (s *sequence) mark(at uint64) { s.seen[at%sequenceWindow/64] |= 1 << (at % 64) }

// forget clears the bits of an earlier turn.
func (s *sequence) forget(from, to uint64) {
	if to-from >= sequenceWindow-1 {
		s.seen = [sequenceWindow / 64]uint64{}
		return
	}
	for ; from <= to; from++ {
		s.seen[from%sequenceWindow/64] &^= 1 << (from % 64)
	}
}
