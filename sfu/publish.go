package sfu

import (
	"fmt"
	"strings"
	"time"

	"github.com/pion/rtcp"
	"github.com/pion/sdp/v3"
	"github.com/pion/webrtc/v4"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// publication is one encoding that the client sends.
type publication struct {
	connection *connection
	track      *webrtc.TrackRemote
	receiver   *webrtc.RTPReceiver
	layer      *forward.Layer
}

// publish reads a track until the connection closes. Pion calls it on
// a goroutine of its own.
func (c *connection) publish(track *webrtc.TrackRemote, receiver *webrtc.RTPReceiver) {
	transceiver := receiver.RTPTransceiver()
	if transceiver == nil {
		return
	}
	source, ok := c.sourceOf(transceiver.Mid(), track.Kind())
	if !ok || !c.begin() {
		return
	}
	defer c.goroutines.Done()
	codec := track.Codec()
	ssrc := uint32(track.SSRC())
	layer := c.room.AddLayer(forward.LayerConfig{
		Peer: c.peer, Source: source, Kind: forwardKind(track.Kind()), RID: track.RID(), SSRC: ssrc,
		Codec:                 forwardCodec(codec, nil),
		AudioLevelExtensionID: extensionID(receiver, sdp.AudioLevelURI),
		SendPLI:               func() { c.sendPLI(ssrc) },
	})
	defer layer.Close()
	c.names.place(ssrc)
	c.log.Debug("track published", "mid", transceiver.Mid(), "source", source, "rid", track.RID(), "codec", codec.MimeType, "ssrc", ssrc)
	p := &publication{connection: c, track: track, receiver: receiver, layer: layer}
	if c.begin() {
		go p.readReports()
	}
	p.readPackets()
}

// readPackets hands the packets to forward, which owns each from then on.
func (p *publication) readPackets() {
	pace := newPace(p.track.Kind())
	for {
		packet := p.connection.room.GetPacket()
		n, _, err := p.track.Read(packet.Buffer())
		if err != nil {
			packet.Release()
			return
		}
		if !pace.Allow() {
			packet.Release()
			continue
		}
		packet.SetLength(n)
		p.layer.Push(packet)
	}
}

// readReports hands the publisher's sender reports to forward. Reading them is
// also what shows them to the interceptor that writes receiver reports.
func (p *publication) readReports() {
	defer p.connection.goroutines.Done()
	buffer := make([]byte, receiveMTU)
	for {
		n, err := p.readReport(buffer)
		if err != nil {
			return
		}
		packets, err := rtcp.Unmarshal(buffer[:n])
		if err != nil {
			continue // What a client sends is its own affair.
		}
		for _, packet := range packets {
			if report, ok := packet.(*rtcp.SenderReport); ok && report.SSRC == uint32(p.track.SSRC()) {
				p.layer.SenderReport(report.NTPTime, report.RTPTime, time.Now())
			}
		}
	}
}

func (p *publication) readReport(buffer []byte) (int, error) {
	if rid := p.track.RID(); rid != "" {
		n, _, err := p.receiver.ReadSimulcast(buffer, rid)
		return n, err
	}
	n, _, err := p.receiver.Read(buffer)
	return n, err
}

// sourceOf says what an m-line carries: what the client named it, else what
// its kind suggests.
func (c *connection) sourceOf(mid string, kind webrtc.RTPCodecType) (forward.Source, bool) {
	if !c.canPublish {
		return "", false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if source, ok := c.sources[mid]; ok {
		return source, (source == forward.SourceMicrophone) == (kind == webrtc.RTPCodecTypeAudio)
	}
	if kind == webrtc.RTPCodecTypeAudio {
		return forward.SourceMicrophone, true
	}
	return forward.SourceCamera, true
}

// sendPLI asks the client for a keyframe of one encoding.
func (c *connection) sendPLI(ssrc uint32) {
	// An error means that the transport is down; then there is nobody to ask.
	_ = c.pc.WriteRTCP([]rtcp.Packet{&rtcp.PictureLossIndication{MediaSSRC: ssrc}})
}

// namedVideo lists the SSRCs of the video that the client says it has been
// sending: they can be asked for keyframes before their first packet.
func namedVideo(senders []*control.Sender) []uint32 {
	var ssrcs []uint32
	for _, s := range senders {
		if s.GetSource() != control.Source_SOURCE_MICROPHONE && s.GetSsrc() != 0 && len(ssrcs) < maxHandoverSSRCs {
			ssrcs = append(ssrcs, s.GetSsrc())
		}
	}
	return ssrcs
}

// extensionID is the negotiated id of a header extension, 0 when there is none.
func extensionID(receiver *webrtc.RTPReceiver, uri string) uint8 {
	for _, extension := range receiver.GetParameters().HeaderExtensions {
		if extension.URI == uri && extension.ID > 0 && extension.ID < 256 {
			return uint8(extension.ID)
		}
	}
	return 0
}

// retransmissionType is the payload type of the RTX of payload, 0 when it has none.
func retransmissionType(payload webrtc.PayloadType, negotiated []webrtc.RTPCodecParameters) uint8 {
	apt := fmt.Sprintf("apt=%d", payload)
	for _, codec := range negotiated {
		if strings.EqualFold(codec.MimeType, webrtc.MimeTypeRTX) && codec.SDPFmtpLine == apt {
			return uint8(codec.PayloadType)
		}
	}
	return 0
}
