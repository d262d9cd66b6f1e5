package sfu

import (
	"net"
	"sync"
	"testing"

	"github.com/pion/dtls/v3"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"
)

// plainServer forwards as a small SFU on pion/webrtc does: a PeerConnection for each client with the default interceptors, a
// TrackLocalStaticRTP for each publisher, and a loop that writes what it reads. It numbers no packets for feedback.
func plainServer(b *testing.B, profile dtls.SRTPProtectionProfile) server {
	b.Helper()
	settings := webrtc.SettingEngine{}
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetIPFilter(net.IP.IsLoopback)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	settings.SetSRTPProtectionProfiles(profile)
	p := &plain{b: b, api: webrtc.NewAPI(webrtc.WithSettingEngine(settings))}
	b.Cleanup(p.running.Wait)
	return server{join: p.join}
}

// plain is the server of one room. Publishers come one after the other, with a slot for every other one.
type plain struct {
	b       *testing.B
	api     *webrtc.API
	cameras []*webrtc.TrackLocalStaticRTP
	running sync.WaitGroup
}

// camera is the track of a publisher, who may not be there yet.
func (p *plain) camera(number int) *webrtc.TrackLocalStaticRTP {
	for len(p.cameras) <= number {
		track, err := webrtc.NewTrackLocalStaticRTP(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8}, "camera", "camera")
		must(p.b, err)
		p.cameras = append(p.cameras, track)
	}
	return p.cameras[number]
}

func (p *plain) join(number int, kind clientKind, sdp string) (string, <-chan struct{}) {
	pc, err := p.api.NewPeerConnection(webrtc.Configuration{})
	must(p.b, err)
	p.b.Cleanup(func() { must(p.b, pc.Close()) })
	for i := 0; i < kind.Video; i++ {
		shown := i
		if kind.Publish && i >= number {
			shown++ // Nobody sees himself.
		}
		p.send(pc, p.camera(shown))
	}
	pc.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) { pass(track, p.camera(number)) })
	connected := make(chan struct{})
	tell := sync.OnceFunc(func() { close(connected) })
	pc.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		if state == webrtc.PeerConnectionStateConnected {
			tell()
		}
	})
	must(p.b, pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: sdp}))
	answer, err := pc.CreateAnswer(nil)
	must(p.b, err)
	gathered := webrtc.GatheringCompletePromise(pc)
	must(p.b, pc.SetLocalDescription(answer))
	<-gathered
	return pc.LocalDescription().SDP, connected
}

// send gives a client a track, and reads what it reports, for the interceptors.
func (p *plain) send(pc *webrtc.PeerConnection, track *webrtc.TrackLocalStaticRTP) {
	transceiver, err := pc.AddTransceiverFromTrack(track, webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionSendonly})
	must(p.b, err)
	p.running.Go(func() {
		for reports := make([]byte, 1500); ; {
			if _, _, err := transceiver.Sender().Read(reports); err != nil {
				return
			}
		}
	})
}

// pass is the loop of a publisher.
func pass(from *webrtc.TrackRemote, to *webrtc.TrackLocalStaticRTP) {
	var packet rtp.Packet
	for b := make([]byte, 1500); ; {
		n, _, err := from.Read(b)
		if err != nil {
			return
		}
		if packet.Unmarshal(b[:n]) == nil {
			_ = to.WriteRTP(&packet) // A subscriber may be gone.
		}
	}
}
