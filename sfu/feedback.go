package sfu

import (
	"time"

	"github.com/pion/rtcp"

	"github.com/holdfast-rtc/holdfast/sfu/bandwidth"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

// maxOneByteID is the greatest id of a header extension in the one-byte form
// (RFC 8285 section 4.2), which is the form that forward writes.
const maxOneByteID = 14

// transportSequenceID is the negotiated id of the transport-wide sequence number
// of what is sent, 0 when there is none.
func transportSequenceID(line *offer.Section) uint8 {
	if id := line.Extensions.TransportCC; id <= maxOneByteID {
		return id
	}
	return 0
}

// RTCP is part of transport.Handler. What makes no sense is passed over: what a client sends is its own affair.
func (c *connection) RTCP(b []byte, arrived time.Time) {
	packets, err := rtcp.Unmarshal(b)
	if err != nil {
		return
	}
	for _, packet := range packets {
		switch p := packet.(type) {
		case *rtcp.SenderReport:
			c.uplink.senderReport(p, arrived)
			c.roundTrip(p.Reports, arrived)
		case *rtcp.ReceiverReport:
			c.roundTrip(p.Reports, arrived)
		case *rtcp.TransportLayerCC:
			c.path.Feedback(reportOf(p))
		case *rtcp.TransportLayerNack:
			if s := c.slotOf(p.MediaSSRC); s != nil && s.ssrc == p.MediaSSRC {
				var missing []uint16
				for _, pair := range p.Nacks {
					missing = append(missing, pair.PacketList()...)
				}
				s.NACK(missing)
			}
		case *rtcp.PictureLossIndication:
			c.keyframeRequested(p.MediaSSRC)
		case *rtcp.FullIntraRequest:
			for _, entry := range p.FIR {
				c.keyframeRequested(entry.SSRC)
			}
		}
	}
}

func (c *connection) keyframeRequested(ssrc uint32) {
	if s := c.slotOf(ssrc); s != nil {
		s.KeyframeRequested()
	}
}

// senderReport hands a publisher's clock to the layer and to what is reported back.
func (u *uplink) senderReport(p *rtcp.SenderReport, arrived time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s := u.streams[p.SSRC]
	if s == nil || s.layer == nil {
		return
	}
	u.reception.SenderReport(p.SSRC, p.NTPTime, arrived)
	s.layer.SenderReport(p.NTPTime, p.RTPTime, arrived)
}

// roundTrip measures the round trip from reports on what we sent (RFC 3550 section 6.4.1).
func (c *connection) roundTrip(reports []rtcp.ReceptionReport, arrived time.Time) {
	for i := range reports {
		r := &reports[i]
		if r.LastSenderReport == 0 || c.slotOf(r.SSRC) == nil {
			continue
		}
		if rtt, ok := forward.RoundTrip(arrived, r.LastSenderReport, r.Delay); ok {
			c.uplink.roundTrip(rtt)
			c.room.SetRoundTrip(c.peer, rtt)
			return
		}
	}
}

func (u *uplink) roundTrip(rtt time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.reception.RoundTrip(rtt)
}

// reportOf reads transport-wide feedback. What a client sends may lack deltas for
// packets that it says have arrived: the report ends there.
func reportOf(feedback *rtcp.TransportLayerCC) bandwidth.Report {
	report := bandwidth.Report{
		Base: feedback.BaseSequenceNumber, Reference: feedback.ReferenceTime,
		Packets: make([]bandwidth.Arrival, 0, min(int(feedback.PacketStatusCount), 16*len(feedback.RecvDeltas)+64)),
	}
	deltas := feedback.RecvDeltas
	// add takes one packet's status and reports whether there may be more.
	add := func(status uint16) bool {
		if len(report.Packets) == int(feedback.PacketStatusCount) {
			return false
		}
		switch status {
		case rtcp.TypeTCCPacketReceivedSmallDelta, rtcp.TypeTCCPacketReceivedLargeDelta:
			if len(deltas) == 0 || deltas[0] == nil {
				return false
			}
			report.Packets = append(report.Packets, bandwidth.Arrival{
				Received: true, Delta: time.Duration(deltas[0].Delta) * time.Microsecond,
			})
			deltas = deltas[1:]
		default:
			report.Packets = append(report.Packets, bandwidth.Arrival{})
		}
		return true
	}
	for _, chunk := range feedback.PacketChunks {
		switch c := chunk.(type) {
		case *rtcp.RunLengthChunk:
			for range c.RunLength {
				if !add(c.PacketStatusSymbol) {
					return report
				}
			}
		case *rtcp.StatusVectorChunk:
			for _, status := range c.SymbolList {
				if !add(status) {
					return report
				}
			}
		}
	}
	return report
}
