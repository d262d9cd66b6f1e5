package peer

import (
	"fmt"

	"github.com/pion/rtcp"
	"github.com/pion/webrtc/v4"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// connection is one Pion peer connection and the offer that it made.
type connection struct {
	pc      *webrtc.PeerConnection
	offerID string
	mic     *webrtc.RTPTransceiver // nil for who does not publish, as the camera
	camera  *webrtc.RTPTransceiver
}

// newConnection builds the m-lines of every client (docs/PROTOCOL.md): own microphone, own camera, receive slots.
func newConnection(offerID string, send *sender, opts Options, read func(track *webrtc.TrackRemote, mid string)) (*connection, error) {
	pc, err := opts.Stack.connect()
	if err != nil {
		return nil, err
	}
	c := &connection{pc: pc, offerID: offerID}
	pc.OnTrack(func(track *webrtc.TrackRemote, receiver *webrtc.RTPReceiver) {
		if transceiver := receiver.RTPTransceiver(); transceiver != nil {
			read(track, transceiver.Mid())
		}
	})
	if err := c.addLines(send, opts); err != nil {
		_ = pc.Close()
		return nil, err
	}
	return c, nil
}

func (c *connection) addLines(send *sender, opts Options) error {
	if send != nil {
		if err := c.addOwn(send); err != nil {
			return err
		}
	}
	slot := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}
	for range opts.AudioSlots {
		if _, err := c.pc.AddTransceiverFromKind(webrtc.RTPCodecTypeAudio, slot); err != nil {
			return fmt.Errorf("add an audio slot: %w", err)
		}
	}
	for range opts.VideoSlots {
		if _, err := c.pc.AddTransceiverFromKind(webrtc.RTPCodecTypeVideo, slot); err != nil {
			return fmt.Errorf("add a video slot: %w", err)
		}
	}
	return nil
}

func (c *connection) addOwn(send *sender) error {
	var err error
	own := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionSendonly}
	if c.mic, err = c.pc.AddTransceiverFromTrack(send.audio, own); err != nil {
		return fmt.Errorf("add the microphone: %w", err)
	}
	for i, layer := range send.layers {
		if i == 0 {
			c.camera, err = c.pc.AddTransceiverFromTrack(layer.track, own)
		} else {
			err = c.camera.Sender().AddEncoding(layer.track)
		}
		if err != nil {
			return fmt.Errorf("add the camera: %w", err)
		}
		go watchKeyframes(c.camera.Sender(), layer.track) // ends when the connection closes
	}
	return nil
}

// watchKeyframes turns PLIs for one layer into keyframes. Its reading also shows NACKs to the responder.
func watchKeyframes(sender *webrtc.RTPSender, layer *track) {
	for {
		var packets []rtcp.Packet
		var err error
		if layer.rid == "" {
			packets, _, err = sender.ReadRTCP()
		} else {
			packets, _, err = sender.ReadSimulcastRTCP(layer.rid)
		}
		if err != nil {
			return
		}
		for _, packet := range packets {
			switch packet.(type) {
			case *rtcp.PictureLossIndication, *rtcp.FullIntraRequest:
				layer.wantKeyframe.Store(true)
			default:
			}
		}
	}
}

// offer is this connection's only offer. It has no candidates: the client's become known as peer-reflexive.
func (c *connection) offer(send *sender) (*wire.Offer, error) {
	sdp, err := c.pc.CreateOffer(nil)
	if err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	if err := c.pc.SetLocalDescription(sdp); err != nil {
		return nil, fmt.Errorf("set: %w", err)
	}
	offer := &wire.Offer{ID: c.offerID, SDP: sdp.SDP, Fresh: true, Senders: wire.List[wire.Sender]{}}
	if c.mic != nil {
		offer.Senders = append(offer.Senders, wire.Sender{Mid: c.mic.Mid(), Source: wire.SourceMicrophone})
	}
	if c.camera != nil {
		mid := c.camera.Mid()
		for _, layer := range send.layers {
			layer.mid.Store(&mid)
		}
		offer.Senders = append(offer.Senders, wire.Sender{Mid: mid, Source: wire.SourceCamera})
	}
	return offer, nil
}

func (c *connection) answer(sdp string) error {
	if err := c.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: sdp}); err != nil {
		return fmt.Errorf("apply the answer: %w", err)
	}
	return nil
}

// stuck reports whether the connection will not come up by itself. A disconnected one may.
func (c *connection) stuck() bool {
	switch c.pc.ConnectionState() {
	case webrtc.PeerConnectionStateConnected, webrtc.PeerConnectionStateDisconnected:
		return false
	default:
		return true
	}
}

func (c *connection) coming() bool {
	state := c.pc.ConnectionState()
	return state == webrtc.PeerConnectionStateNew || state == webrtc.PeerConnectionStateConnecting
}

func (c *connection) close() { _ = c.pc.Close() }
