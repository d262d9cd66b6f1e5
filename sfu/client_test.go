package sfu

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pion/dtls/v3"
	"github.com/pion/rtp"
	"github.com/pion/sdp/v3"
	"github.com/pion/webrtc/v4"

	"github.com/holdfast-rtc/holdfast/control"
)

// mediaClient is a browser's part played by Pion: it offers its own m-lines and
// its slots, and counts what is shown in each slot.
type mediaClient struct {
	t       testing.TB
	pc      *webrtc.PeerConnection
	senders []*control.Sender
	tracks  []*webrtc.TrackLocalStaticRTP
	offers  int
	skipped uint16 // a sequence number that is never sent
	unnamed bool   // send layers without MID and RID extensions
	tag     byte   // marks the payload of what this client sends

	mu    sync.Mutex              // guards shown
	shown map[string]map[byte]int // by mid: packets with each tag
}

// newMediaClient makes a client with the given number of slots of each kind.
// rids, if any, are the layers of its camera.
func newMediaClient(t testing.TB, tag byte, publishes bool, slots int, rids ...string) *mediaClient {
	t.Helper()
	return newMediaClientWith(t, nil, tag, publishes, slots, rids...)
}

// newMediaClientWith makes one that encrypts media in no other ways than the given ones; nil is what Pion can.
func newMediaClientWith(t testing.TB, profiles []dtls.SRTPProtectionProfile, tag byte, publishes bool, slots int, rids ...string) *mediaClient {
	t.Helper()
	settings := webrtc.SettingEngine{}
	if profiles != nil {
		settings.SetSRTPProtectionProfiles(profiles...)
	}
	return newMediaClientAs(t, settings, tag, publishes, slots, rids...)
}

// newMediaClientAs makes one with settings of Pion's.
func newMediaClientAs(t testing.TB, settings webrtc.SettingEngine, tag byte, publishes bool, slots int, rids ...string) *mediaClient {
	t.Helper()
	settings.SetIncludeLoopbackCandidate(true)
	engine := &webrtc.MediaEngine{}
	if err := engine.RegisterDefaultCodecs(); err != nil {
		t.Fatal(err)
	}
	if err := webrtc.ConfigureSimulcastExtensionHeaders(engine); err != nil {
		t.Fatal(err)
	}
	api := webrtc.NewAPI(webrtc.WithMediaEngine(engine), webrtc.WithSettingEngine(settings))
	pc, err := api.NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	c := &mediaClient{t: t, pc: pc, tag: tag, shown: map[string]map[byte]int{}}
	t.Cleanup(func() { _ = pc.GracefulClose() }) // The test has judged already.
	pc.OnTrack(c.count)
	if publishes {
		c.publish(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2}, control.Source_SOURCE_MICROPHONE)
		c.publish(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP8, ClockRate: 90000}, control.Source_SOURCE_CAMERA, rids...)
	}
	for range slots {
		c.addSlot(webrtc.RTPCodecTypeAudio)
		c.addSlot(webrtc.RTPCodecTypeVideo)
	}
	return c
}

func (c *mediaClient) publish(codec webrtc.RTPCodecCapability, source control.Source, rids ...string) {
	c.t.Helper()
	if len(rids) == 0 {
		rids = []string{""}
	}
	var sender *webrtc.RTPSender
	for _, rid := range rids {
		var options []func(*webrtc.TrackLocalStaticRTP)
		if rid != "" {
			options = append(options, webrtc.WithRTPStreamID(rid))
		}
		track, err := webrtc.NewTrackLocalStaticRTP(codec, source.String(), "stream", options...)
		if err != nil {
			c.t.Fatal(err)
		}
		c.tracks = append(c.tracks, track)
		if sender != nil {
			err = sender.AddEncoding(track)
		} else {
			var transceiver *webrtc.RTPTransceiver
			if transceiver, err = c.pc.AddTransceiverFromTrack(track, webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionSendonly}); err == nil {
				sender = transceiver.Sender()
			}
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
	c.senders = append(c.senders, &control.Sender{Mid: fmt.Sprint(len(c.senders)), Source: source})
}

func (c *mediaClient) addSlot(kind webrtc.RTPCodecType) {
	c.t.Helper()
	if _, err := c.pc.AddTransceiverFromKind(kind, webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionRecvonly}); err != nil {
		c.t.Fatal(err)
	}
}

// offerMessage makes an offer.
func (c *mediaClient) offerMessage(options *webrtc.OfferOptions) *control.Offer {
	c.t.Helper()
	offer, err := c.pc.CreateOffer(options)
	if err != nil {
		c.t.Fatal(err)
	}
	gathered := webrtc.GatheringCompletePromise(c.pc)
	if err := c.pc.SetLocalDescription(offer); err != nil {
		c.t.Fatal(err)
	}
	<-gathered
	c.offers++
	return &control.Offer{Id: fmt.Sprintf("%c%d", c.tag, c.offers), Sdp: c.pc.LocalDescription().SDP, Senders: c.senders}
}

// negotiate offers and applies the answer.
func (c *mediaClient) negotiate(e *attachStream, options *webrtc.OfferOptions) {
	c.t.Helper()
	offer := c.offerMessage(options)
	e.send(&control.PeerMessage{Message: &control.PeerMessage_Offer{Offer: offer}})
	c.accept(e.awaitAnswer(offer.GetId()))
}

func (c *mediaClient) accept(sdp string) {
	c.t.Helper()
	if err := c.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: sdp}); err != nil {
		c.t.Fatalf("set answer: %v\n%s", err, sdp)
	}
}

// awaitAnswer gives the answer to an offer.
func (e *attachStream) awaitAnswer(id string) string {
	e.t.Helper()
	event := e.await("an answer to "+id, func(e *control.PeerEvent) bool { return e.GetAnswer() != nil || e.GetOfferRejected() != nil })
	if rejected := event.GetOfferRejected(); rejected != nil {
		e.t.Fatalf("offer rejected: %s", rejected.GetMessage())
	}
	if event.GetAnswer().GetOfferId() != id {
		e.t.Fatalf("answer to %s, want %s", event.GetAnswer().GetOfferId(), id)
	}
	return event.GetAnswer().GetSdp()
}

// awaitConnected waits until the node says that DTLS is up.
func (e *attachStream) awaitConnected() {
	e.t.Helper()
	e.await("the transport is connected", func(e *control.PeerEvent) bool {
		return e.GetTransport().GetState() == control.TransportState_TRANSPORT_STATE_CONNECTED
	})
}

// count reads what is shown in a slot.
func (c *mediaClient) count(track *webrtc.TrackRemote, receiver *webrtc.RTPReceiver) {
	mid := receiver.RTPTransceiver().Mid()
	for {
		packet, _, err := track.ReadRTP()
		if err != nil {
			return
		}
		if len(packet.Payload) == 0 {
			continue
		}
		c.mu.Lock()
		if c.shown[mid] == nil {
			c.shown[mid] = map[byte]int{}
		}
		c.shown[mid][packet.Payload[len(packet.Payload)-1]]++
		c.mu.Unlock()
	}
}

// sees reports in which slots the packets with a tag were shown, and whether in
// an audio and in a video slot at least the given number of times.
func (c *mediaClient) sees(tag byte, atLeast int) bool {
	kinds := map[webrtc.RTPCodecType]bool{}
	for _, transceiver := range c.pc.GetTransceivers() {
		c.mu.Lock()
		n := c.shown[transceiver.Mid()][tag]
		c.mu.Unlock()
		if n >= atLeast {
			kinds[transceiver.Kind()] = true
		}
	}
	return len(kinds) == 2
}

// seesOneOf reports whether video with one of the tags was shown.
func (c *mediaClient) seesOneOf(tags string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, transceiver := range c.pc.GetTransceivers() {
		for tag := range c.shown[transceiver.Mid()] {
			if transceiver.Kind() == webrtc.RTPCodecTypeVideo && strings.ContainsRune(tags, rune(tag)) {
				return true
			}
		}
	}
	return false
}

// forget starts the counting anew.
func (c *mediaClient) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = map[string]map[byte]int{}
}

// send sends audio and keyframes until ctx ends. What a layer of number i sends
// is tagged tag+i.
func (c *mediaClient) send(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for sequence := uint16(1); ; sequence++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if sequence == c.skipped {
			continue
		}
		for i, track := range c.tracks {
			_ = track.WriteRTP(c.packet(track, i, sequence)) // Not bound yet, or closed: the test will see.
		}
	}
}

func (c *mediaClient) packet(track *webrtc.TrackLocalStaticRTP, i int, sequence uint16) *rtp.Packet {
	if track.Kind() == webrtc.RTPCodecTypeAudio {
		return &rtp.Packet{
			Header:  rtp.Header{Version: 2, SequenceNumber: sequence, Timestamp: uint32(sequence) * 960},
			Payload: []byte{0xfc, 1, 2, c.tag},
		}
	}
	tag := c.tag
	if rid := track.RID(); rid != "" {
		tag += byte(i - 1) // The microphone is the first.
	}
	packet := &rtp.Packet{
		Header: rtp.Header{Version: 2, SequenceNumber: sequence, Timestamp: uint32(sequence) * 1800, Marker: true},
		// A VP8 keyframe: descriptor with the start bit, frame tag, start code, 320 x 180.
		Payload: []byte{0x10, 0x10, 0x02, 0x00, 0x9d, 0x01, 0x2a, 0x40, 0x01, 0xb4, 0x00, 0, 0, tag},
	}
	if rid := track.RID(); rid != "" && !c.unnamed {
		c.name(packet, rid)
	}
	return packet
}

// name adds the MID and RID extensions as browsers do.
func (c *mediaClient) name(packet *rtp.Packet, rid string) {
	for _, transceiver := range c.pc.GetTransceivers() {
		if transceiver.Kind() != webrtc.RTPCodecTypeVideo || transceiver.Sender() == nil || transceiver.Sender().Track() == nil {
			continue
		}
		for _, extension := range transceiver.Sender().GetParameters().HeaderExtensions {
			value := map[string]string{sdp.SDESMidURI: transceiver.Mid(), sdp.SDESRTPStreamIDURI: rid}[extension.URI]
			if value == "" {
				continue
			}
			if err := packet.SetExtension(uint8(extension.ID), []byte(value)); err != nil {
				c.t.Error(err)
			}
		}
	}
}

// goSend sends until the test ends.
func (c *mediaClient) goSend() {
	ctx, cancel := context.WithCancel(c.t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { c.send(ctx) })
	c.t.Cleanup(func() { cancel(); ended.Wait() })
}
