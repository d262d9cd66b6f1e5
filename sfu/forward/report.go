package forward

import (
	"time"

	"github.com/pion/rtcp"
)

const (
	reportInterval = time.Second
	firstReport    = 200 * time.Millisecond // soon, for the picture and the sound to find each other
)

// slotReport keeps what a slot's sender reports say.
type slotReport struct {
	packets, octets uint32
	reported        uint32 // packets, at the last report
	next            time.Time
}

func (r *slotReport) sent(octets int) {
	r.packets++
	r.octets += uint32(octets)
}

// tick sends a report when it is time and something was sent since the last
// one. The wall clock in it is ours: all publishers' clocks have been mapped to
// it, so that any audio slot and any video slot are in step.
func (s *Slot) tick(now time.Time) {
	r := &s.report
	if !s.ready || s.current == nil || s.cfg.WriteRTCP == nil || r.packets == r.reported {
		return
	}
	if r.next.IsZero() {
		r.next = now.Add(firstReport)
	}
	if now.Before(r.next) {
		return
	}
	r.next = now.Add(reportInterval)
	r.reported = r.packets
	err := s.cfg.WriteRTCP([]rtcp.Packet{&rtcp.SenderReport{
		SSRC:        s.cfg.SSRC,
		NTPTime:     ntpTime(now),
		RTPTime:     s.rewriter.outgoingTimestamp(s.current.clock.timestamp(now)),
		PacketCount: r.packets,
		OctetCount:  r.octets,
	}})
	if err != nil {
		s.room.log.Debug("sender report not sent", "peer", s.cfg.Peer, "mid", s.cfg.Mid, "error", err)
	}
}
