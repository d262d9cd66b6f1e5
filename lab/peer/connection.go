package peer

import (
	"fmt"

	"github.com/pion/interceptor"
	"github.com/pion/rtcp"
	"github.com/pion/webrtc/v4"

	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// maxPacketBytes is the largest packet read: a path's usual MTU.
const maxPacketBytes = 1500

// connection is one Pion peer connection and the offer that it made.
type connection struct {
	pc      *webrtc.PeerConnection
	offerID string
	mic     *webrtc.RTPTransceiver
	camera  *webrtc.RTPTransceiver
}

// newConnection builds the m-lines of every client (docs/PROTOCOL.md): own
// microphone, own camera, then the receive slots.
func newConnection(offerID string, send *sender, opts Options, received func(mid string, n int)) (*connection, error) {
	pc, err := newPeerConnection()
	if err != nil {
		return nil, err
	}
	c := &connection{pc: pc, offerID: offerID}
	if err := c.addLines(send, opts); err != nil {
		_ = pc.Close()
		return nil, err
	}
	pc.OnTrack(func(track *webrtc.TrackRemote, receiver *webrtc.RTPReceiver) {
		mid := midOf(pc, receiver)
		buffer := make([]byte, maxPacketBytes)
		for {
			n, _, err := track.Read(buffer)
			if err != nil {
				return // the connection has closed
			}
			received(mid, n)
		}
	})
	return c, nil
}

func newPeerConnection() (*webrtc.PeerConnection, error) {
	engine := &webrtc.MediaEngine{}
	if err := engine.RegisterDefaultCodecs(); err != nil {
		return nil, fmt.Errorf("register codecs: %w", err)
	}
	registry := &interceptor.Registry{}
	if err := webrtc.RegisterDefaultInterceptors(engine, registry); err != nil {
		return nil, fmt.Errorf("register interceptors: %w", err)
	}
	setting := webrtc.SettingEngine{}
	setting.SetIncludeLoopbackCandidate(true)
	api := webrtc.NewAPI(webrtc.WithMediaEngine(engine), webrtc.WithInterceptorRegistry(registry), webrtc.WithSettingEngine(setting))
	pc, err := api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		return nil, fmt.Errorf("make a peer connection: %w", err)
	}
	return pc, nil
}

func (c *connection) addLines(send *sender, opts Options) error {
	var err error
	own := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionSendonly}
	if c.mic, err = c.pc.AddTransceiverFromTrack(send.audio, own); err != nil {
		return fmt.Errorf("add the microphone: %w", err)
	}
	if c.camera, err = c.pc.AddTransceiverFromTrack(send.video, own); err != nil {
		return fmt.Errorf("add the camera: %w", err)
	}
	go c.watchKeyframes(send) // ends when the connection closes
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

// watchKeyframes turns the SFU's PLIs into keyframes.
func (c *connection) watchKeyframes(send *sender) {
	for {
		packets, _, err := c.camera.Sender().ReadRTCP()
		if err != nil {
			return
		}
		for _, packet := range packets {
			switch packet.(type) {
			case *rtcp.PictureLossIndication, *rtcp.FullIntraRequest:
				send.wantKeyframe.Store(true)
			default:
			}
		}
	}
}

// offer is this connection's only offer. It names no candidates: the SFU's
// candidates are in its answer and the client's become known as peer-reflexive.
func (c *connection) offer() (*wire.Offer, error) {
	sdp, err := c.pc.CreateOffer(nil)
	if err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	if err := c.pc.SetLocalDescription(sdp); err != nil {
		return nil, fmt.Errorf("set: %w", err)
	}
	return &wire.Offer{
		ID: c.offerID, SDP: sdp.SDP, Fresh: true,
		Senders: wire.List[wire.Sender]{
			{Mid: c.mic.Mid(), Source: wire.SourceMicrophone},
			{Mid: c.camera.Mid(), Source: wire.SourceCamera},
		},
	}, nil
}

func (c *connection) answer(sdp string) error {
	if err := c.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: sdp}); err != nil {
		return fmt.Errorf("apply the answer: %w", err)
	}
	return nil
}

func (c *connection) close() { _ = c.pc.Close() }

func midOf(pc *webrtc.PeerConnection, receiver *webrtc.RTPReceiver) string {
	for _, transceiver := range pc.GetTransceivers() {
		if transceiver.Receiver() == receiver {
			return transceiver.Mid()
		}
	}
	return ""
}
