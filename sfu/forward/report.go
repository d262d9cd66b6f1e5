package forward

import (
	"slices"
	"time"

	"github.com/pion/rtcp"
)

const (
	reportInterval = time.Second
	firstReport    = 200 * time.Millisecond // soon, for the picture and the sound to find each other
	maxNames       = 31                     // that one packet of RTCP takes
)

// CNAME names the node as a source (RFC 3550 section 6.5.1): to a subscriber, all that comes is of one clock.
const CNAME = "holdfast"

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

// due reports whether it is time for a report that may come sooner by a while, and something was sent since the last one.
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

// senderReport is the slot's. The wall clock in it is ours: all publishers' clocks have been mapped to it, so that any audio slot and any
// video slot are in step.
func (s *Slot) senderReport(now time.Time) *rtcp.SenderReport {
	r := &s.report
	r.next, r.reported = now.Add(reportInterval), r.packets
	return &rtcp.SenderReport{
		SSRC:        s.cfg.SSRC,
		NTPTime:     ntpTime(now),
		RTPTime:     s.rewriter.outgoingTimestamp(s.current.clock.timestamp(now)),
		PacketCount: r.packets,
		OctetCount:  r.octets,
	}
}

// sendReports sends the reports that are due, and those that soon will be, as one compound with the names of their sources (RFC 3550
// section 6.1).
func (sub *subscriber) sendReports(now time.Time) {
	first := slices.IndexFunc(sub.slots, func(s *Slot) bool { return s.due(now, 0) })
	if first < 0 {
		return
	}
	s := sub.slots[first]
	names := &rtcp.SourceDescription{}
	var packets []rtcp.Packet
	for _, other := range sub.slots {
		// A connection that is being replaced has slots of its own.
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
