package sfu

import (
	"encoding/binary"
	"time"

	"github.com/pion/rtcp"

	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

// of the one-byte form (RFC 8285 section 4.2), which forward writes
const maxOneByteID = 14

func transportSequenceID(line *offer.Section) uint8 {
	if id := line.Extensions.TransportCC; id <= maxOneByteID {
		return id
	}
	return 0
}

const (
	rtcpFeedback     = 205 // RFC 4585 section 6.1
	formatTransport  = 15
	rtcpHeaderBytes  = 4
	maxRTCPInPackets = 64 // in one compound
)

// RTCP is part of transport.Handler.
func (c *connection) RTCP(b []byte, arrived time.Time) {
	defer c.blame()
	for range maxRTCPInPackets {
		if len(b) < rtcpHeaderBytes {
			return
		}
		size := rtcpHeaderBytes + 4*int(binary.BigEndian.Uint16(b[2:]))
		if size > len(b) {
			return
		}
		if b[1] == rtcpFeedback && b[0]&0x1F == formatTransport {
			if report, ok := c.feedback.read(b[:size]); ok {
				c.path.Feedback(report)
			}
		} else if packets, err := rtcp.Unmarshal(b[:size]); err == nil {
			for _, packet := range packets {
				c.report(packet, arrived)
			}
		}
		b = b[size:]
	}
}

func (c *connection) report(packet rtcp.Packet, arrived time.Time) {
	switch p := packet.(type) {
	case *rtcp.SenderReport:
		c.uplink.senderReport(p, arrived)
		c.roundTrip(p.Reports, arrived)
	case *rtcp.ReceiverReport:
		c.roundTrip(p.Reports, arrived)
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

func (c *connection) keyframeRequested(ssrc uint32) {
	if s := c.slotOf(ssrc); s != nil {
		s.KeyframeRequested()
	}
}

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

// roundTrip uses reports on what we sent (RFC 3550 section 6.4.1).
func (c *connection) roundTrip(reports []rtcp.ReceptionReport, arrived time.Time) {
	for i := range reports {
		r := &reports[i]
		if r.LastSenderReport == 0 || c.slotOf(r.SSRC) == nil {
			continue
		}
		if rtt, ok := c.room.RoundTrip(arrived, r.LastSenderReport, r.Delay); ok {
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
