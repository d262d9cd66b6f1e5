package sfu

import (
	"strings"
	"testing"
	"time"

	"github.com/pion/rtp"
	"github.com/pion/webrtc/v4"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

// TestAPublisherMayChangeItsCodec among those of the answer, without another SSRC, and back.
func TestAPublisherMayChangeItsCodec(t *testing.T) {
	s := newStage(t, "one")
	aliceStream, _ := s.attach("room", "alice", 1)
	alice := newMediaClient(t, 'a', false, 0)
	track := &rawTrack{ready: make(chan struct{})}
	if _, err := alice.pc.AddTransceiverFromTrack(track, webrtc.RTPTransceiverInit{Direction: webrtc.RTPTransceiverDirectionSendonly}); err != nil {
		t.Fatal(err)
	}
	alice.senders = append(alice.senders, &control.Sender{Mid: "0", Source: control.Source_SOURCE_CAMERA})
	alice.negotiate(aliceStream, nil)
	<-track.ready
	bobStream, _ := s.attach("room", "bob", 1)
	bob := newMediaClient(t, 'b', false, 1)
	bob.negotiate(bobStream, nil)
	bobStream.awaitConnected()
	for _, sent := range []struct{ mime, begins, tag string }{
		{webrtc.MimeTypeVP8, "\x10\x10\x02\x00\x9d\x01\x2a\x40\x01\xb4\x00", "1"},
		{webrtc.MimeTypeVP9, "\x8a\x92\x34\x10\x05\x00\x02\xd0", "2"},
		{webrtc.MimeTypeVP8, "\x10\x10\x02\x00\x9d\x01\x2a\x40\x01\xb4\x00", "3"},
	} {
		eventually(t, "bob sees "+sent.mime+", picture "+sent.tag, func() bool {
			track.write(t, track.bound.SSRC(), sent.mime, []byte(sent.begins+"\x00\x00"+sent.tag))
			return bob.seesOneOf(sent.tag)
		})
	}
}

// TestACodecChangesLongAfterTheLastChange: the sequence numbers have wrapped meanwhile. Only what the change overtook is left out.
func TestACodecChangesLongAfterTheLastChange(t *testing.T) {
	s := newStage(t, "one")
	s.attach("room", "alice", 1) // The node is running when somebody could attach.
	sdp := strings.NewReplacer("SAVPF 96 97", "SAVPF 96 97 98", "a=rtpmap:97 ", "a=rtpmap:98 VP9/90000\r\na=rtpmap:97 ").Replace(publishing)
	o, err := offer.Read(sdp, offerLimits(s.node.cfg.Limits))
	if err != nil {
		t.Fatal(err)
	}
	c, err := connect(s.node.transport, o, s.looseConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if _, err := c.answer(&control.Offer{Id: "1", Sdp: sdp}, o); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	for _, sent := range []struct {
		after       time.Duration
		number      uint16
		payloadType uint8
		want        string
	}{
		{0, 100, 96, "video/VP8"},
		{time.Second, 101, 98, "video/VP9"},
		{3 * time.Second, 99, 96, "video/VP9"}, // It was overtaken.
		{5 * time.Minute, 101 + 40_000, 96, "video/VP8"},
		{10 * time.Minute, 101 + 15_000, 98, "video/VP9"}, // 40,536 on
	} {
		header := &rtp.Header{Version: 2, SSRC: 1, SequenceNumber: sent.number, PayloadType: sent.payloadType}
		packet, err := (&rtp.Packet{Header: *header, Payload: make([]byte, 40)}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		c.RTP(header, packet, begun.Add(sent.after))
		if got := c.uplink.streams[1].codec.MimeType; got != sent.want {
			t.Errorf("after %v the stream is of %s, want %s", sent.after, got, sent.want)
		}
	}
}
