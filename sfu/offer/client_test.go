package offer

import (
	"slices"
	"strings"
	"testing"

	"github.com/pion/sdp/v3"
	"github.com/pion/webrtc/v4"
)

// client is a Pion client with a microphone, a camera in two layers and a slot of each kind.
func client(t *testing.T) *webrtc.PeerConnection {
	t.Helper()
	engine := &webrtc.MediaEngine{}
	if err := engine.RegisterDefaultCodecs(); err != nil {
		t.Fatal(err)
	}
	if err := webrtc.ConfigureSimulcastExtensionHeaders(engine); err != nil {
		t.Fatal(err)
	}
	pc, err := webrtc.NewAPI(webrtc.WithMediaEngine(engine)).NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pc.GracefulClose(); err != nil {
			t.Error(err)
		}
	})
	microphone := track(t, webrtc.MimeTypeOpus, "")
	sendOnly := webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionSendonly}
	if _, err := pc.AddTransceiverFromTrack(microphone, sendOnly); err != nil {
		t.Fatal(err)
	}
	camera, err := pc.AddTransceiverFromTrack(track(t, webrtc.MimeTypeVP8, "q"), sendOnly)
	if err != nil {
		t.Fatal(err)
	}
	if err := camera.Sender().AddEncoding(track(t, webrtc.MimeTypeVP8, "h")); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []webrtc.RTPCodecType{webrtc.RTPCodecTypeAudio, webrtc.RTPCodecTypeVideo} {
		if _, err := pc.AddTransceiverFromKind(kind, webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}); err != nil {
			t.Fatal(err)
		}
	}
	return pc
}

func track(t *testing.T, mime, rid string) *webrtc.TrackLocalStaticRTP {
	t.Helper()
	var options []func(*webrtc.TrackLocalStaticRTP)
	if rid != "" {
		options = append(options, webrtc.WithRTPStreamID(rid))
	}
	made, err := webrtc.NewTrackLocalStaticRTP(webrtc.RTPCodecCapability{MimeType: mime}, mime, "stream", options...)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestPionTakesTheAnswer(t *testing.T) {
	pc := client(t)
	for version := range uint64(2) { // The second is a renegotiation.
		text, err := pc.CreateOffer(nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := pc.SetLocalDescription(text); err != nil {
			t.Fatal(err)
		}
		o := mustRead(t, pc.LocalDescription().SDP)
		if rids := o.Sections[1].RIDs; !slices.Equal(rids, []string{"q", "h"}) {
			t.Errorf("the camera has the layers %v", rids)
		}
		a := answerTo(o)
		a.Candidates, a.Version = nil, version // Nobody is there to be found.
		answer := o.Answer(a)
		if err := pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: answer}); err != nil {
			t.Fatalf("Pion refuses the answer: %v\n%s", err, answer)
		}
		judge(t, pc, o)
	}
}

// judge compares what Pion has negotiated with what the offer was read to be.
func judge(t *testing.T, pc *webrtc.PeerConnection, o *Offer) {
	t.Helper()
	if got := pc.SignalingState(); got != webrtc.SignalingStateStable {
		t.Errorf("the signaling state is %v", got)
	}
	for i, transceiver := range pc.GetTransceivers() {
		s := &o.Sections[i]
		if transceiver.Mid() != s.MID {
			t.Fatalf("transceiver %d has the mid %s, want %s", i, transceiver.Mid(), s.MID)
		}
		if !s.Publishes {
			continue
		}
		parameters := transceiver.Sender().GetParameters()
		if len(parameters.Encodings) != max(1, len(s.RIDs)) {
			t.Errorf("mid %s is sent in %d layers", s.MID, len(parameters.Encodings))
		}
		var types []uint8
		for _, codec := range parameters.Codecs {
			if !strings.EqualFold(codec.MimeType, webrtc.MimeTypeRTX) {
				types = append(types, uint8(codec.PayloadType))
			}
		}
		for _, codec := range s.Codecs {
			if !slices.Contains(types, codec.PayloadType) {
				t.Errorf("mid %s: Pion sends the payload types %v and not %+v", s.MID, types, codec)
			}
		}
		if s.Audio {
			continue
		}
		for _, extension := range parameters.HeaderExtensions {
			if want := map[string]uint8{sdp.SDESMidURI: s.Extensions.MID, sdp.SDESRTPStreamIDURI: s.Extensions.RID}[extension.URI]; want != 0 && int(want) != extension.ID {
				t.Errorf("mid %s: Pion has the id %d of %s, want %d", s.MID, extension.ID, extension.URI, want)
			}
		}
	}
}
