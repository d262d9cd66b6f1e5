package sfu

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/ice/v4"
	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/nack"
	"github.com/pion/interceptor/pkg/report"
	"github.com/pion/interceptor/pkg/twcc"
	"github.com/pion/sdp/v3"
	"github.com/pion/webrtc/v4"
)

// ICE's clock. A connection that is silent for iceDisconnected is said to be
// disconnected (a Wi-Fi hiccup is shorter); after iceFailed more it is given up
// and the peer must offer again. Keepalives go out every iceKeepalive.
const (
	iceDisconnected = 5 * time.Second
	iceFailed       = 25 * time.Second
	iceKeepalive    = 2 * time.Second

	dtlsRetransmission = 100 * time.Millisecond
)

// maxNACKs is how often a lost packet is asked for, once in 100 ms. Pion's generator does not see a repair that comes by RTX, so
// it uses all of them; without a bound it went on for seconds, and retransmissions filled the path of a publisher.
const maxNACKs = 10

// receiveMTU is the largest RTP packet read. Browsers stay below 1200 bytes; an
// Ethernet frame bounds everybody else, and the hand-over may add a few.
const receiveMTU = 1500

// newMediaEngine lists what is negotiated. It must be the same on every node of
// the cluster and every release that may run beside another: a browser that
// moves its connection refuses an answer whose codecs or extensions differ.
func newMediaEngine() (*webrtc.MediaEngine, error) {
	engine := &webrtc.MediaEngine{}
	for _, codec := range codecs() {
		kind := webrtc.RTPCodecTypeVideo
		if codec.MimeType == webrtc.MimeTypeOpus {
			kind = webrtc.RTPCodecTypeAudio
		}
		if err := engine.RegisterCodec(codec, kind); err != nil {
			return nil, fmt.Errorf("register codec %s: %w", codec.MimeType, err)
		}
	}
	// The order gives the ids where the offer leaves them open.
	for _, extension := range []struct {
		uri          string
		audio, video bool
	}{
		{sdp.AudioLevelURI, true, false},
		{sdp.ABSSendTimeURI, true, true},
		{sdp.TransportCCURI, true, true},
		{sdp.SDESMidURI, true, true},
		{sdp.SDESRTPStreamIDURI, false, true},
		{sdp.SDESRepairRTPStreamIDURI, false, true},
	} {
		for kind, wanted := range map[webrtc.RTPCodecType]bool{
			webrtc.RTPCodecTypeAudio: extension.audio, webrtc.RTPCodecTypeVideo: extension.video,
		} {
			if !wanted {
				continue
			}
			if err := engine.RegisterHeaderExtension(webrtc.RTPHeaderExtensionCapability{URI: extension.uri}, kind); err != nil {
				return nil, fmt.Errorf("register header extension %s: %w", extension.uri, err)
			}
		}
	}
	return engine, nil
}

// codecs are VP8 and Opus, and H.264 in the two baseline forms that every browser
// and phone can encode and decode. The payload types are only defaults: an
// answer uses the offer's.
func codecs() []webrtc.RTPCodecParameters {
	feedback := []webrtc.RTCPFeedback{
		{Type: "goog-remb"}, {Type: "transport-cc"}, {Type: "ccm", Parameter: "fir"}, {Type: "nack"}, {Type: "nack", Parameter: "pli"},
	}
	video := func(mime, fmtp string, payload webrtc.PayloadType) []webrtc.RTPCodecParameters {
		return []webrtc.RTPCodecParameters{{
			RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: mime, ClockRate: 90000, SDPFmtpLine: fmtp, RTCPFeedback: feedback},
			PayloadType:        payload,
		}, {
			RTPCodecCapability: webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeRTX, ClockRate: 90000, SDPFmtpLine: fmt.Sprintf("apt=%d", payload)},
			PayloadType:        payload + 1,
		}}
	}
	list := []webrtc.RTPCodecParameters{{
		RTPCodecCapability: webrtc.RTPCodecCapability{
			MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2, SDPFmtpLine: "minptime=10;useinbandfec=1",
			RTCPFeedback: []webrtc.RTCPFeedback{{Type: "transport-cc"}},
		},
		PayloadType: 111,
	}}
	list = append(list, video(webrtc.MimeTypeVP8, "", 96)...)
	list = append(list, video(webrtc.MimeTypeH264, "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f", 108)...)
	return append(list, video(webrtc.MimeTypeH264, "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42001f", 102)...)
}

// newInterceptors are what is needed on the receiving side: NACKs and receiver
// reports to publishers, and transport-wide feedback for their bandwidth
// estimate. The sending side has none: retransmission and sender reports come
// from forward, which has one packet cache per source where Pion's responder
// would have one per subscriber.
func newInterceptors(logs pionLogs, names *handover) (*interceptor.Registry, error) {
	nacks, err := nack.NewGeneratorInterceptor(nack.WithGeneratorLoggerFactory(logs), nack.GeneratorMaxNacksPerPacket(maxNACKs))
	if err != nil {
		return nil, fmt.Errorf("make NACK generator: %w", err)
	}
	reports, err := report.NewReceiverInterceptor(report.WithReceiverLoggerFactory(logs))
	if err != nil {
		return nil, fmt.Errorf("make receiver reports: %w", err)
	}
	feedback, err := twcc.NewSenderInterceptor(twcc.WithLoggerFactory(logs))
	if err != nil {
		return nil, fmt.Errorf("make transport-wide feedback: %w", err)
	}
	registry := &interceptor.Registry{}
	registry.Add(nacks)
	registry.Add(reports)
	registry.Add(feedback)
	registry.Add(names)
	return registry, nil
}

// newSettings are the transport's settings for one node.
func newSettings(cfg Config, mux ice.UDPMux, log *slog.Logger) (webrtc.SettingEngine, error) {
	settings := webrtc.SettingEngine{LoggerFactory: pionLogs{log}}
	settings.SetICEUDPMux(mux)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4, webrtc.NetworkTypeUDP6})
	settings.DisableActiveTCP(true) // Or a client could have us connect to whatever it names.
	settings.SetIncludeLoopbackCandidate(cfg.Loopback)
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	settings.SetICETimeouts(iceDisconnected, iceFailed, iceKeepalive)
	settings.SetReceiveMTU(receiveMTU)
	// A lost handshake packet costs a viewer this long instead of DTLS's 1 s.
	settings.SetDTLSRetransmissionInterval(dtlsRetransmission)
	// One engine for a connection and the senders made for it (see connection.go).
	settings.DisableMediaEngineCopy(true)
	if len(cfg.AdvertiseIPs) > 0 {
		rule := webrtc.ICEAddressRewriteRule{
			External: cfg.AdvertiseIPs, AsCandidateType: webrtc.ICECandidateTypeHost, Mode: webrtc.ICEAddressRewriteReplace,
		}
		if err := settings.SetICEAddressRewriteRules(rule); err != nil {
			return webrtc.SettingEngine{}, fmt.Errorf("advertise %v: %w", cfg.AdvertiseIPs, err)
		}
	}
	return settings, nil
}

// srtpProfiles are the ways to encrypt media that one connection offers (RFC 7714, RFC 5764). The node is the DTLS client, so the
// browser picks, and libwebrtc picks AES128_CM_HMAC_SHA1_80 whenever it is offered. That costs six times as much as AES-128-GCM
// (1950 against 325 ns a packet), so it is offered only to a client whose handshake has failed without it.
func srtpProfiles(compatible bool) []dtls.SRTPProtectionProfile {
	if compatible {
		return []dtls.SRTPProtectionProfile{dtls.SRTP_AEAD_AES_128_GCM, dtls.SRTP_AEAD_AES_256_GCM, dtls.SRTP_AES128_CM_HMAC_SHA1_80}
	}
	return []dtls.SRTPProtectionProfile{dtls.SRTP_AEAD_AES_128_GCM}
}

// newAPI makes the API of one connection. Each has its own, because its media
// engine remembers what was negotiated and is shared with the senders that we
// make ourselves.
func newAPI(settings webrtc.SettingEngine, logs pionLogs, names *handover) (*webrtc.API, error) {
	engine, err := newMediaEngine()
	if err != nil {
		return nil, err
	}
	registry, err := newInterceptors(logs, names)
	if err != nil {
		return nil, err
	}
	return webrtc.NewAPI(webrtc.WithMediaEngine(engine), webrtc.WithSettingEngine(settings), webrtc.WithInterceptorRegistry(registry)), nil
}
