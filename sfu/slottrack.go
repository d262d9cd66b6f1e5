package sfu

import (
	"errors"
	"strings"
	"sync"

	"github.com/pion/rtcp"
	"github.com/pion/webrtc/v4"

	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// errNoCommonCodec says that a receive m-line offers no codec of ours.
var errNoCommonCodec = errors.New("the m-line offers no codec that is forwarded here")

// slotTrack is one receive m-line of the client as Pion sees it: a track to send.
// What goes out on it is written by a forward slot, which is made when Pion has
// negotiated the m-line and binds the track.
type slotTrack struct {
	connection *connection
	mid        string
	kind       webrtc.RTPCodecType

	mu   sync.Mutex // guards the fields below
	slot *forward.Slot
	ssrc uint32
	// repairs reads what is addressed to the retransmissions; nil for none.
	repairs *webrtc.RTPSender
}

// Bind is part of webrtc.TrackLocal.
func (t *slotTrack) Bind(bound webrtc.TrackLocalContext) (webrtc.RTPCodecParameters, error) {
	negotiated := bound.CodecParameters()
	codecs := forwardCodecs(negotiated)
	if len(codecs) == 0 {
		return webrtc.RTPCodecParameters{}, errNoCommonCodec
	}
	slot := t.connection.room.AddSlot(forward.SlotConfig{
		Peer: t.connection.peer, Mid: t.mid, Kind: forwardKind(t.kind),
		Writer: bound.WriteStream(), SSRC: uint32(bound.SSRC()), RTXSSRC: uint32(bound.SSRCRetransmission()),
		Codecs: codecs, WriteRTCP: t.connection.pc.WriteRTCP,
		Path: t.connection.path, TransportSequenceID: transportSequenceID(bound.HeaderExtensions()),
	})
	var repairs *webrtc.RTPSender
	if ssrc := bound.SSRCRetransmission(); ssrc != 0 {
		var err error
		if repairs, err = t.readRepairs(ssrc); err != nil {
			slot.Close()
			return webrtc.RTPCodecParameters{}, err
		}
	}
	t.mu.Lock()
	t.slot, t.ssrc, t.repairs = slot, uint32(bound.SSRC()), repairs
	t.mu.Unlock()
	t.connection.slotBound(slot)
	for _, codec := range negotiated {
		if codec.PayloadType == webrtc.PayloadType(codecs[0].PayloadType) {
			return codec, nil
		}
	}
	return negotiated[0], nil
}

// Unbind is part of webrtc.TrackLocal.
func (t *slotTrack) Unbind(webrtc.TrackLocalContext) error {
	t.mu.Lock()
	slot, repairs := t.slot, t.repairs
	t.slot, t.repairs = nil, nil
	t.mu.Unlock()
	if slot != nil {
		slot.Close()
	}
	if repairs != nil {
		return repairs.Stop()
	}
	return nil
}

// ID is part of webrtc.TrackLocal: the same on every node, so that nothing in
// the page changes when the connection moves.
func (t *slotTrack) ID() string { return "slot-" + t.mid }

// StreamID is part of webrtc.TrackLocal: one stream a slot, or browsers would
// try to synchronize people with each other.
func (t *slotTrack) StreamID() string { return "slot-" + t.mid }

// RID is part of webrtc.TrackLocal: a slot has one encoding.
func (t *slotTrack) RID() string { return "" }

// Kind is part of webrtc.TrackLocal.
func (t *slotTrack) Kind() webrtc.RTPCodecType { return t.kind }

// bound gives the forward slot and its SSRC, nil before Bind and after Unbind.
func (t *slotTrack) bound() (*forward.Slot, uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.slot, t.ssrc
}

// readFeedback hands what the client reports about the slot to forward, until
// the connection closes.
func (t *slotTrack) readFeedback(sender *webrtc.RTPSender) {
	buffer := make([]byte, receiveMTU)
	for {
		n, _, err := sender.Read(buffer)
		if err != nil {
			return
		}
		packets, err := rtcp.Unmarshal(buffer[:n])
		if err != nil {
			continue // What a client sends is its own affair.
		}
		for _, packet := range packets {
			if feedback, ok := packet.(*rtcp.TransportLayerCC); ok {
				t.connection.path.Feedback(reportOf(feedback))
			}
		}
		if slot, ssrc := t.bound(); slot != nil {
			passFeedback(slot, ssrc, packets)
		}
	}
}

// passFeedback hands on what concerns ssrc: a compound packet is read once for
// each SSRC that it speaks of.
func passFeedback(slot *forward.Slot, ssrc uint32, packets []rtcp.Packet) {
	for _, packet := range packets {
		switch report := packet.(type) {
		case *rtcp.TransportLayerNack:
			if report.MediaSSRC != ssrc {
				continue
			}
			var missing []uint16
			for _, pair := range report.Nacks {
				missing = append(missing, pair.PacketList()...)
			}
			slot.NACK(missing)
		case *rtcp.PictureLossIndication:
			if report.MediaSSRC == ssrc {
				slot.KeyframeRequested()
			}
		case *rtcp.FullIntraRequest:
			for _, entry := range report.FIR {
				if entry.SSRC == ssrc {
					slot.KeyframeRequested()
				}
			}
		}
	}
}

func forwardKind(kind webrtc.RTPCodecType) forward.Kind {
	if kind == webrtc.RTPCodecTypeAudio {
		return forward.KindAudio
	}
	return forward.KindVideo
}

// forwardCodecs pairs each media codec with its RTX payload type.
func forwardCodecs(negotiated []webrtc.RTPCodecParameters) []forward.Codec {
	var codecs []forward.Codec
	for _, codec := range negotiated {
		if strings.EqualFold(codec.MimeType, webrtc.MimeTypeRTX) {
			continue
		}
		codecs = append(codecs, forwardCodec(codec, negotiated))
	}
	return codecs
}

func forwardCodec(codec webrtc.RTPCodecParameters, negotiated []webrtc.RTPCodecParameters) forward.Codec {
	return forward.Codec{
		MimeType: codec.MimeType, Fmtp: codec.SDPFmtpLine, ClockRate: codec.ClockRate,
		PayloadType: uint8(codec.PayloadType), RTXPayloadType: retransmissionType(codec.PayloadType, negotiated),
	}
}
