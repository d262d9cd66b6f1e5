package forward

import (
	"slices"
	"time"

	"github.com/pion/rtcp"
)

const (
	reportInterval = time.Second
	firstReport    = 200 * time.Millisecond // for lip-sync
	maxNames       = 31                     // RTCP's limit
)

// CNAME names one clock for all streams (RFC 3550 section 6.5.1).
const CNAME = "holdfast"

type slotReport struct {
	packets, octets uint32
	reported        uint32
	next            time.Time
}

func (r *slotReport) sent(octets int) {
	r.packets++
	r.octets += uint32(octets)
}

func (s *Slot) due(now time.Time, sooner time.Duration) bool {
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
	wall := s.room.wall(now)
	return &rtcp.SenderReport{
		SSRC:        s.cfg.SSRC,
		NTPTime:     ntpTime(wall),
		RTPTime:     s.rewriter.outgoingTimestamp(s.current.clock.timestamp(wall)),
		PacketCount: r.packets,
		OctetCount:  r.octets,
	}
}

// sendReports sends what is due now or soon as one compound (RFC 3550 section 6.1).
func (sub *subscriber) sendReports(now time.Time) {
	first := slices.IndexFunc(sub.slots, func(s *Slot) bool { return s.due(now, 0) })
	if first < 0 {
		return
	}
	s := sub.slots[first]
	names := &rtcp.SourceDescription{}
	var packets []rtcp.Packet
	for _, other := range sub.slots {
		// A connection being replaced has its own slots.
		same := other == s || s.cfg.Path != nil && other.cfg.Path == s.cfg.Path
		if !same || !other.due(now, reportInterval/2) || len(names.Chunks) == maxNames {
			continue
		}
		packets = append(packets, other.senderReport(now))
		names.Chunks = append(names.Chunks, rtcp.SourceDescriptionChunk{
			Source: other.cfg.SSRC, Items: []rtcp.SourceDescriptionItem{{Type: rtcp.SDESCNAME, Text: CNAME}},
		})
	}
	if err := s.cfg.WriteRTCP(append(packets, names)); err != nil {
		s.room.log.Debug("sender reports not sent", "peer", s.cfg.Peer, "error", err)
	}
}
