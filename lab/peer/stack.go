package peer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/nack"
	"github.com/pion/interceptor/pkg/report"
	"github.com/pion/interceptor/pkg/twcc"
	"github.com/pion/logging"
	"github.com/pion/sdp/v3"
	"github.com/pion/transport/v4/packetio"
	"github.com/pion/webrtc/v4"
)

// maxPacketBytes is the largest packet read: a path's usual MTU.
const maxPacketBytes = 1500

// sentPackets of each video layer are kept to be sent again: 0.7 s of the largest.
const sentPackets = 128

// handshakeRetry is the first pause before a lost DTLS packet is sent again.
const handshakeRetry = 100 * time.Millisecond

// What may wait to be read of one stream; more is dropped. Nobody reads the reports on the slots.
const (
	waitingMediaBytes  = 256 << 10
	waitingReportBytes = 8 << 10
)

// Stack is what the peers of a process share of WebRTC. Each connection has its own UDP socket: a media node and Pion's
// mux tell connections apart by the pair of addresses, and the node has one address.
type Stack struct {
	api          *webrtc.API
	certificates []webrtc.Certificate
	video        Video
}

// NewStack makes the stack for peers that send this kind of video. With loopback they use no other interface, which
// saves sockets.
func NewStack(video Video, loopback bool) (*Stack, error) {
	settings := newSettings()
	if loopback {
		settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
		settings.SetIPFilter(net.IP.IsLoopback)
	}
	return newStack(video, settings)
}

// NewRemoteStack is for media nodes on other hosts: loopback would be tried first and in vain.
func NewRemoteStack(video Video) (*Stack, error) {
	settings := newSettings()
	settings.SetIPFilter(func(ip net.IP) bool { return !ip.IsLoopback() })
	return newStack(video, settings)
}

func newStack(video Video, settings webrtc.SettingEngine) (*Stack, error) {
	engine, err := newMediaEngine(video)
	if err != nil {
		return nil, err
	}
	registry, err := newInterceptors(video)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	certificate, err := webrtc.GenerateCertificate(key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return &Stack{
		api: webrtc.NewAPI(
			webrtc.WithMediaEngine(engine), webrtc.WithInterceptorRegistry(registry), webrtc.WithSettingEngine(settings),
		),
		certificates: []webrtc.Certificate{*certificate},
		video:        video,
	}, nil
}

func (s *Stack) connect() (*webrtc.PeerConnection, error) {
	pc, err := s.api.NewPeerConnection(webrtc.Configuration{Certificates: s.certificates})
	if err != nil {
		return nil, fmt.Errorf("make a peer connection: %w", err)
	}
	return pc, nil
}

func newSettings() webrtc.SettingEngine {
	settings := webrtc.SettingEngine{
		// What goes wrong shows in the counts.
		LoggerFactory: &logging.DefaultLoggerFactory{Writer: io.Discard, DefaultLogLevel: logging.LogLevelDisabled},
	}
	settings.BufferFactory = func(kind packetio.BufferPacketType, _ uint32) io.ReadWriteCloser {
		buffer := packetio.NewBuffer()
		buffer.SetLimitSize(waitingMediaBytes)
		if kind == packetio.RTCPBufferPacket {
			buffer.SetLimitSize(waitingReportBytes)
		}
		return buffer
	}
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	settings.SetReceiveMTU(maxPacketBytes)
	settings.SetDTLSRetransmissionInterval(handshakeRetry)
	// GCM costs a sixth of the HMAC profile.
	settings.SetSRTPProtectionProfiles(dtls.SRTP_AEAD_AES_128_GCM, dtls.SRTP_AES128_CM_HMAC_SHA1_80)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4, webrtc.NetworkTypeUDP6})
	return settings
}

// newMediaEngine registers one codec of each kind: comparing codecs is half of a connection's cost.
func newMediaEngine(video Video) (*webrtc.MediaEngine, error) {
	engine := &webrtc.MediaEngine{}
	feedback := []webrtc.RTCPFeedback{{Type: "nack"}, {Type: "nack", Parameter: "pli"}, {Type: "ccm", Parameter: "fir"}}
	var audioFeedback []webrtc.RTCPFeedback
	if video == VideoSimulcast {
		feedback = append(feedback, webrtc.RTCPFeedback{Type: "transport-cc"})
		audioFeedback = []webrtc.RTCPFeedback{{Type: "transport-cc"}}
	}
	for _, codec := range []struct {
		kind  webrtc.RTPCodecType
		codec webrtc.RTPCodecParameters
	}{
		{webrtc.RTPCodecTypeAudio, webrtc.RTPCodecParameters{PayloadType: 111, RTPCodecCapability: webrtc.RTPCodecCapability{
			MimeType: webrtc.MimeTypeOpus, ClockRate: audioClock, Channels: 2, SDPFmtpLine: "minptime=10;useinbandfec=1", RTCPFeedback: audioFeedback,
		}}},
		{webrtc.RTPCodecTypeVideo, webrtc.RTPCodecParameters{PayloadType: 96, RTPCodecCapability: webrtc.RTPCodecCapability{
			MimeType: webrtc.MimeTypeVP8, ClockRate: videoClock, RTCPFeedback: feedback,
		}}},
		{webrtc.RTPCodecTypeVideo, webrtc.RTPCodecParameters{PayloadType: 97, RTPCodecCapability: webrtc.RTPCodecCapability{
			MimeType: webrtc.MimeTypeRTX, ClockRate: videoClock, SDPFmtpLine: "apt=96",
		}}},
	} {
		if err := engine.RegisterCodec(codec.codec, codec.kind); err != nil {
			return nil, fmt.Errorf("register codec %s: %w", codec.codec.MimeType, err)
		}
	}
	return engine, registerExtensions(engine, video)
}

func registerExtensions(engine *webrtc.MediaEngine, video Video) error {
	both := []webrtc.RTPCodecType{webrtc.RTPCodecTypeAudio, webrtc.RTPCodecTypeVideo}
	for _, extension := range []struct {
		uri    string
		kinds  []webrtc.RTPCodecType
		wanted bool
	}{
		{sdp.AudioLevelURI, both[:1], true},
		{sdp.SDESMidURI, both, true},
		{sdp.SDESRTPStreamIDURI, both[1:], video == VideoSimulcast},
		{sdp.TransportCCURI, both, video == VideoSimulcast},
	} {
		for _, kind := range extension.kinds {
			if !extension.wanted {
				continue
			}
			if err := engine.RegisterHeaderExtension(webrtc.RTPHeaderExtensionCapability{URI: extension.uri}, kind); err != nil {
				return fmt.Errorf("register header extension %s: %w", extension.uri, err)
			}
		}
	}
	return nil
}

// newInterceptors ask for lost packets and send packets again. With simulcast they also report as browsers do, for the
// node's estimate of bandwidth; reports cost a goroutine and a timer each.
func newInterceptors(video Video) (*interceptor.Registry, error) {
	registry := &interceptor.Registry{}
	generator, err := nack.NewGeneratorInterceptor()
	if err != nil {
		return nil, fmt.Errorf("make NACK generator: %w", err)
	}
	responder, err := nack.NewResponderInterceptor(nack.ResponderSize(sentPackets))
	if err != nil {
		return nil, fmt.Errorf("make NACK responder: %w", err)
	}
	if video == VideoSimulcast {
		registry.Add(plainRetransmission{&interceptor.NoOp{}}) // before the responder: it changes what that is told
	}
	registry.Add(generator)
	registry.Add(responder)
	if video != VideoSimulcast {
		return registry, nil
	}
	receiver, err := report.NewReceiverInterceptor()
	if err != nil {
		return nil, fmt.Errorf("make receiver reports: %w", err)
	}
	sent, err := report.NewSenderInterceptor()
	if err != nil {
		return nil, fmt.Errorf("make sender reports: %w", err)
	}
	feedback, err := twcc.NewSenderInterceptor()
	if err != nil {
		return nil, fmt.Errorf("make transport-wide feedback: %w", err)
	}
	registry.Add(receiver)
	registry.Add(sent)
	registry.Add(feedback)
	return registry, nil
}

// plainRetransmission sends a layer's packets again under its own SSRC. RTX of a layer without a signaled SSRC needs the
// RRID extension, which Pion's responder does not write.
type plainRetransmission struct{ *interceptor.NoOp }

// NewInterceptor is part of interceptor.Factory; it has no state.
func (p plainRetransmission) NewInterceptor(string) (interceptor.Interceptor, error) { return p, nil }

// BindLocalStream hides the RTX stream from the interceptors that come after.
func (plainRetransmission) BindLocalStream(info *interceptor.StreamInfo, writer interceptor.RTPWriter) interceptor.RTPWriter {
	info.SSRCRetransmission, info.PayloadTypeRetransmission = 0, 0
	return writer
}
