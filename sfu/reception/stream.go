package reception

import (
	"time"

	"github.com/pion/rtcp"
)

// maxDropout and maxMisorder bound the steps of a sequence number as in RFC 3550 section A.1. maxMisorder is larger than there, because a
// step back may be a retransmission without RTX.
const (
	maxDropout  = 3000
	maxMisorder = window
)

type stream struct {
	ssrc, clockRate uint32
	repair          Repair

	begun         bool
	first, newest int64
	jumped        bool   // following is set
	following     uint16 // after a jump
	heard         bool

	count                     int64 // originals
	expectedPrior, countPrior int64
	transit                   uint32
	jitter                    int64 // times 16
	lastReport                uint32
	lastReportAt              time.Duration

	lost []lostPacket // ascending, at most maxLost
}

func (s *stream) received(sequence uint16, timestamp uint32, at time.Duration, path *path) (missing bool) {
	if !s.begun {
		s.begin(sequence, timestamp, at)
	}
	switch step := int64(int16(sequence - uint16(s.newest))); {
	case step > 0 && step <= maxDropout:
		missing = s.skip(step, at, path)
		s.newest += step
	case step <= 0 && step > -maxMisorder:
		// Without RTX, a packet that was asked for may be a retransmission, so it does not count as reordered.
		if p, ok := s.found(s.newest + step); ok && (s.repair == RTX || p.tries == 0) {
			path.reordered(at - p.missed)
		}
	case s.jumped && sequence == s.following:
		s.begin(sequence, timestamp, at)
	default:
		s.jumped, s.following = true, sequence+1
		return false
	}
	s.jumped = false
	s.heard = true
	s.count++
	s.delayed(timestamp, at)
	return missing
}

func (s *stream) repaired(sequence uint16, at time.Duration, path *path) bool {
	p, ok := s.found(s.newest + int64(int16(sequence-uint16(s.newest))))
	if ok && p.tries > 0 {
		path.repaired(p.asked, at)
	}
	return ok
}

func (s *stream) begin(sequence uint16, timestamp uint32, at time.Duration) {
	s.begun = true
	s.first, s.newest = int64(sequence), int64(sequence)
	s.count, s.countPrior, s.expectedPrior = 0, 0, 0
	s.transit, s.jitter = s.ticks(at)-timestamp, 0
	s.lost = s.lost[:0]
}

// delayed updates the interarrival jitter (RFC 3550 section A.8).
func (s *stream) delayed(timestamp uint32, at time.Duration) {
	transit := s.ticks(at) - timestamp
	d := int64(int32(transit - s.transit))
	s.transit = transit
	s.jitter += max(d, -d) - (s.jitter+8)>>4
}

func (s *stream) ticks(at time.Duration) uint32 {
	rate := time.Duration(s.clockRate)
	return uint32(at/time.Second*rate + at%time.Second*rate/time.Second)
}

// report ends the reporting interval and returns the report block of the stream (RFC 3550 section A.3), with the losses of the interval.
func (s *stream) report(at time.Duration) (rtcp.ReceptionReport, Losses) {
	s.heard = false
	expected := s.newest - s.first + 1
	block := rtcp.ReceptionReport{
		SSRC:               s.ssrc,
		LastSequenceNumber: uint32(s.newest),
		// Duplicates would make it negative, which many read as 16 million.
		TotalLost:        uint32(min(max(expected-s.count, 0), 0x7fffff)),
		Jitter:           uint32(s.jitter >> 4),
		LastSenderReport: s.lastReport,
	}
	if s.lastReport != 0 {
		delay := max(at-s.lastReportAt, 0)
		block.Delay = uint32(min(delay.Seconds()*65536, 1<<32-1))
	}
	interval := expected - s.expectedPrior
	lost := interval - (s.count - s.countPrior)
	if interval > 0 && lost > 0 {
		block.FractionLost = uint8(min(lost<<8/interval, 255))
	}
	s.expectedPrior, s.countPrior = expected, s.count
	return block, Losses{Expected: uint64(max(interval, 0)), Lost: uint64(max(lost, 0))}
}
