package sfu

import (
	"strings"
	"testing"

	"github.com/pion/webrtc/v4"

	"github.com/holdfast-rtc/holdfast/control"
)

// TestWhoLacksACodecIsTold: of a picture that cannot be shown, also on another signaling node, and when it can be after all.
func TestWhoLacksACodecIsTold(t *testing.T) {
	t.Parallel() // most of it is waiting
	s := newStage(t, "one")
	aliceStream, _ := s.attach("room", "alice", 1)
	alice := newMediaClient(t, 'a', false, 1)
	alice.publish(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP9, ClockRate: 90000, SDPFmtpLine: "profile-id=0"}, control.Source_SOURCE_CAMERA)
	alice.negotiate(aliceStream, nil)
	alice.goSend()

	bobStream, _ := s.attach("room", "bob", 1)
	bob := newMediaClient(t, 'b', false, 1)
	offer := bob.offerMessage(nil)
	offer.Sdp = strings.ReplaceAll(offer.GetSdp(), "VP9/90000", "VP99/90000")
	bobStream.send(&control.PeerMessage{Message: &control.PeerMessage_Offer{Offer: offer}})
	bob.accept(bobStream.awaitAnswer(offer.GetId()))
	lacks := func(e *control.PeerEvent) bool {
		list := e.GetSlots().GetLacks()
		return len(list) == 1 && list[0].GetPeer() == "alice" && list[0].GetSource() == control.Source_SOURCE_CAMERA && list[0].GetCodec() == "VP9"
	}
	bobStream.await("what bob cannot be shown", lacks)
	aliceStream.await("the word to send another codec", func(e *control.PeerEvent) bool { return e.GetReoffer().GetReason() == reofferCodec })
	again, _ := s.attach("room", "bob", 2)
	again.await("the same on another signaling node", lacks)

	aliceStream.send(&control.PeerMessage{Message: &control.PeerMessage_Mute{Mute: &control.Mute{Source: control.Source_SOURCE_CAMERA, Muted: true}}})
	again.await("that nothing is lacking", func(e *control.PeerEvent) bool { return e.GetSlots() != nil && len(e.GetSlots().GetLacks()) == 0 })
}

// TestAPublisherAtAnotherNodeIsAskedForANewOffer: what it sends cannot be decoded at a third node of the room, or does not come.
func TestAPublisherAtAnotherNodeIsAskedForANewOffer(t *testing.T) {
	t.Parallel() // most of it is waiting
	for _, reason := range []string{reofferCodec, reofferSilent} {
		t.Run(reason, func(t *testing.T) {
			s := newSpreadRoom(t, 2)
			s.attach("room", "host", 1, knowsPlaces)
			s.spread()
			first := s.attachMessage(s.pin(s.epoch), "room", "alice", 1)
			knowsPlaces(first.GetAttach())
			aliceStream, _ := attachedAt(s.branches[0], first)
			alice := newMediaClient(t, 'a', false, 1)
			alice.publish(webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeVP9, ClockRate: 90000, SDPFmtpLine: "profile-id=0"}, control.Source_SOURCE_CAMERA)
			encoding := alice.pc.GetSenders()[0].GetParameters().Encodings[0]
			if reason == reofferSilent {
				alice.senders = append(alice.senders, &control.Sender{Mid: "1", Source: control.Source_SOURCE_CAMERA, Ssrc: uint32(encoding.SSRC)})
			}
			alice.negotiate(aliceStream, nil)
			aliceStream.awaitConnected()
			if reason == reofferCodec {
				alice.goSend()
			}
			bobStream, _ := attachedAt(s.branches[1], s.watcher("bob", 1))
			bob := newMediaClient(t, 'b', false, 1)
			offer := bob.offerMessage(nil)
			if reason == reofferCodec {
				offer.Sdp = strings.ReplaceAll(offer.GetSdp(), "VP9/90000", "VP99/90000")
			} else {
				offer.Slots = []*control.Slot{{Mid: "1", Kind: control.Kind_KIND_VIDEO, Peer: "alice", Source: control.Source_SOURCE_CAMERA}}
			}
			bobStream.send(&control.PeerMessage{Message: &control.PeerMessage_Offer{Offer: offer}})
			bob.accept(bobStream.awaitAnswer(offer.GetId()))
			aliceStream.await("the word to offer again", func(e *control.PeerEvent) bool { return e.GetReoffer().GetReason() == reason })
		})
	}
}
