package sfu

import (
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/sdp/v3"
	"github.com/pion/webrtc/v4"

	"github.com/holdfast-rtc/holdfast/sfu/bandwidth"
)

// maxOneByteID is the greatest id of a header extension in the one-byte form
// (RFC 8285 section 4.2), which is the form that forward writes.
const maxOneByteID = 14

// transportSequenceID is the negotiated id of the transport-wide sequence number
// of what is sent, 0 when there is none.
func transportSequenceID(extensions []webrtc.RTPHeaderExtensionParameter) uint8 {
	for _, extension := range extensions {
		if extension.URI == sdp.TransportCCURI && extension.ID > 0 && extension.ID <= maxOneByteID {
			return uint8(extension.ID)
		}
	}
	return 0
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

// repairTrack stands for the retransmissions of a slot towards Pion. It sends
// nothing: forward writes them with the slot. But browsers address transport-wide
// feedback to the SSRC of the packet that came last, also when that was a retransmission
// or padding, and Pion hands what is addressed to an SSRC only to a sender of it; it
// would keep up to 100 KB of what nobody reads.
type repairTrack struct {
	*slotTrack
}

// Bind is part of webrtc.TrackLocal.
func (repairTrack) Bind(bound webrtc.TrackLocalContext) (webrtc.RTPCodecParameters, error) {
	negotiated := bound.CodecParameters()
	if len(negotiated) == 0 {
		return webrtc.RTPCodecParameters{}, errNoCommonCodec
	}
	return negotiated[0], nil
}

// Unbind is part of webrtc.TrackLocal.
func (repairTrack) Unbind(webrtc.TrackLocalContext) error { return nil }

// readRepairs reads what the client addresses to the SSRC of the slot's retransmissions.
func (t *slotTrack) readRepairs(ssrc webrtc.SSRC) (*webrtc.RTPSender, error) {
	c := t.connection
	sender, err := c.api.NewRTPSender(repairTrack{t}, c.pc.SCTP().Transport())
	if err != nil {
		return nil, err
	}
	err = sender.Send(webrtc.RTPSendParameters{
		Encodings: []webrtc.RTPEncodingParameters{{RTPCodingParameters: webrtc.RTPCodingParameters{SSRC: ssrc}}},
	})
	if err != nil {
		return nil, err
	}
	if !c.begin() {
		return nil, errConnectionClosed
	}
	go func() {
		defer c.goroutines.Done()
		t.readFeedback(sender)
	}()
	return sender, nil
}
