package peer

// Loss is counted from RTP sequence numbers.
type Loss struct {
	Expected   uint64 // from the first to the highest number
	Received   uint64 // different numbers
	Recovered  uint64 // by retransmission
	Late       uint64 // after a higher number, not by retransmission
	Duplicates uint64
	TooLate    uint64 // past the window: they stay lost
	Jumps      uint64 // restarts of the count
}

// Lost returns how many packets never came.
func (l Loss) Lost() uint64 { return l.Expected - l.Received }

// Add adds o.
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
	// 3 s of the largest layer
	sequenceWindow = 1024
	// MAX_DROPOUT of RFC 3550
	maxJump = 3000
)

// sequence counts one stream's loss (RFC 3550 appendix A.3); duplicates and retransmissions hide none.
type sequence struct {
	began          bool
	first, highest uint64 // extended
	seen           [sequenceWindow / 64]uint64
	received       uint64 // since first
	sum            Loss   // before first
}

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

// begin leaves room for packets before the first.
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

func (s *sequence) forget(from, to uint64) {
	if to-from >= sequenceWindow-1 {
		s.seen = [sequenceWindow / 64]uint64{}
		return
	}
	for ; from <= to; from++ {
		s.seen[from%sequenceWindow/64] &^= 1 << (from % 64)
	}
}
