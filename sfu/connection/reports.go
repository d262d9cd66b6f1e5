package connection

import (
	"encoding/binary"
	"time"

	"github.com/pion/rtcp"
)

// Reported is what a client's last report says of the way to it. Zero fields are not known.
type Reported struct {
	RoundTrip time.Duration
	// Lost is the share of the packets of its worst stream that did not arrive since the report before.
	Lost float64
}

// Reported returns what the client last reported.
func (c *Connection) Reported() Reported {
	if r := c.reported.Load(); r != nil {
		return *r
	}
	return Reported{}
}

// RTCP is part of transport.Handler: it reads one compound packet of the client's, on the socket's reader.
func (c *Connection) RTCP(b []byte, arrived time.Time) {
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

func (c *Connection) report(packet rtcp.Packet, arrived time.Time) {
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
			c.cfg.Tally.NACKsReceived.Add(uint64(len(missing)))
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

func (c *Connection) keyframeRequested(ssrc uint32) {
	if s := c.slotOf(ssrc); s != nil {
		c.cfg.Tally.PLIsReceived.Add(1)
		s.KeyframeRequested()
	}
}

// roundTrip measures the round trip from the reports on what the node sent (RFC 3550 section 6.4.1).
func (c *Connection) roundTrip(reports []rtcp.ReceptionReport, arrived time.Time) {
	var worst uint8
	for i := range reports {
		if c.slotOf(reports[i].SSRC) != nil {
			worst = max(worst, reports[i].FractionLost)
		}
	}
	for i := range reports {
		r := &reports[i]
		if r.LastSenderReport == 0 || c.slotOf(r.SSRC) == nil {
			continue
		}
		if rtt, ok := c.cfg.Room.RoundTrip(arrived, r.LastSenderReport, r.Delay); ok {
			c.uplink.roundTrip(rtt)
			c.cfg.Room.SetRoundTrip(c.cfg.Peer, rtt)
			c.reported.Store(&Reported{RoundTrip: rtt, Lost: float64(worst) / 256})
			return
		}
	}
}

// blame tells the owner of a panic, and lets the panic go on: the transport recovers, and ends the connection. It is deferred where an
// authentic packet of the client is read.
func (c *Connection) blame() {
	if fault := recover(); fault != nil {
		c.cfg.Owner.Broke()
		panic(fault) //nolint:forbidigo // it goes on to the transport
	}
}
