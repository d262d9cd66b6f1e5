package sfu

import (
	"testing"

	"github.com/pion/webrtc/v4"

	"github.com/holdfast-rtc/holdfast/control"
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
