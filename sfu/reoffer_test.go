package sfu

import (
	"slices"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/control"
)

// TestASilentPublisherIsAskedForANewOffer: the camera of somebody who had been sending it does not come. Whoever shows it waits,
// and the publisher is told.
func TestASilentPublisherIsAskedForANewOffer(t *testing.T) {
	t.Parallel() // most of it is waiting
	for _, reason := range []string{reofferSilent, reofferUnplaced} {
		t.Run(reason, func(t *testing.T) { askedForAnOffer(t, reason) })
	}
}

func askedForAnOffer(t *testing.T, reason string) {
	s := newStage(t, "one")
	aliceStream, _ := s.attach("room", "alice", 1)
	alice := newMediaClient(t, 'a', true, 0)
	encoding := alice.pc.GetSenders()[1].GetParameters().Encodings[0]
	alice.senders = append(alice.senders, &control.Sender{Mid: "1", Source: control.Source_SOURCE_CAMERA, Ssrc: uint32(encoding.SSRC)})
	alice.negotiate(aliceStream, nil)
	aliceStream.awaitConnected() // and sends nothing
	c := s.connectionOf("room", "alice")
	if reason == reofferUnplaced {
		header := rtp.Header{Version: 2, SSRC: 4711}
		packet, err := (&rtp.Packet{Header: header, Payload: make([]byte, 40)}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		c.RTP(&header, packet, time.Now())
	}
	bobStream, _ := s.attach("room", "bob", 1)
	bob := newMediaClient(t, 'b', false, 1)
	offer := bob.offerMessage(nil)
	offer.Slots = []*control.Slot{{Mid: "1", Kind: control.Kind_KIND_VIDEO, Peer: "alice", Source: control.Source_SOURCE_CAMERA}}
	bobStream.send(&control.PeerMessage{Message: &control.PeerMessage_Offer{Offer: offer}})
	bob.accept(bobStream.awaitAnswer(offer.GetId()))
	event := aliceStream.await("word that her camera does not come", func(e *control.PeerEvent) bool { return e.GetReoffer() != nil })
	if m := event.GetReoffer(); m.GetReason() != reason || !slices.Equal(m.GetMids(), []string{"1"}) {
		t.Errorf("alice is told %v", m)
	}
	if !c.Alive() {
		t.Error("the connection takes no more offers")
	}
}
