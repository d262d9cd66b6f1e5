package reception

import (
	"slices"
	"time"

	"github.com/pion/rtcp"
)

// Calls cannot use a frame 1.5 s late.
const (
	window   = 1024
	maxAge   = 1500 * time.Millisecond
	maxTries = 10

	// Bounds a NACK to 1,036 bytes. After a larger gap a keyframe comes sooner.
	maxLost = 256
)

type lostPacket struct {
	sequence int64
	missed   time.Duration // when a later one came
	asked    time.Duration
	due      time.Duration
	tries    int
}

// skip reports whether more packets are missing.
func (s *stream) skip(step int64, at time.Duration, path *path) bool {
	if s.repair == NoRepair {
		return false
	}
	gap := int(step) - 1
	if gap > maxLost {
		s.lost = s.lost[:0]
		return false
	}
	if gap == 0 && len(s.lost) == 0 {
		return false
	}
	gone := max(len(s.lost)+gap-maxLost, 0)
	for gone < len(s.lost) && s.newest+step-s.lost[gone].sequence > window {
		gone++
	}
	s.lost = slices.Delete(s.lost, 0, gone)
	for n := s.newest + 1; n < s.newest+step; n++ {
		s.lost = append(s.lost, lostPacket{sequence: n, missed: at, due: at + path.wait})
	}
	return gap > 0
}

func (s *stream) found(sequence int64) (p lostPacket, ok bool) {
	i, ok := slices.BinarySearchFunc(s.lost, sequence, func(p lostPacket, n int64) int { return int(p.sequence - n) })
	if ok {
		p = s.lost[i]
		s.lost = slices.Delete(s.lost, i, i+1)
	}
	return p, ok
}

func (s *stream) ask(at, spacing time.Duration, pairs []rtcp.NackPair) ([]rtcp.NackPair, time.Duration) {
	next := never
	kept := s.lost[:0]
	for _, p := range s.lost {
		if at-p.missed > maxAge || p.tries == maxTries && at >= p.due {
			continue
		}
		if at >= p.due {
			pairs = name(pairs, uint16(p.sequence))
			if p.tries == 0 {
				p.asked = at
			}
			p.tries++
			p.due = at + spacing
		}
		next = min(next, p.due)
		kept = append(kept, p)
	}
	s.lost = kept
	return pairs, next
}

// name adds a number greater than those before (RFC 4585 section 6.2.1).
func name(pairs []rtcp.NackPair, sequence uint16) []rtcp.NackPair {
	if len(pairs) > 0 {
		last := &pairs[len(pairs)-1]
		if ahead := sequence - last.PacketID; ahead >= 1 && ahead <= 16 {
			last.LostPackets |= 1 << (ahead - 1)
			return pairs
		}
	}
	return append(pairs, rtcp.NackPair{PacketID: sequence})
}
