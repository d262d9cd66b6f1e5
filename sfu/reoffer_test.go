package sfu

import (
	"slices"
	"testing"

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
	s.node.mu.Lock()
	room := s.node.rooms["room"]
	s.node.mu.Unlock()
	var connection *connection
	if err := room.do(t.Context(), func() { connection = room.peers["alice"].connection }); err != nil {
		t.Fatal(err)
	}
	if reason == reofferUnplaced {
		connection.uplink.mu.Lock()
		connection.uplink.unplaced[4711] = &control.Stream{Ssrc: 4711, Packets: 1}
		connection.uplink.mu.Unlock()
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
	if !connection.alive() {
		t.Error("the connection takes no more offers")
	}
}
