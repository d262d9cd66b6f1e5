package sfu

import (
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
)

// TestAConnectionForEachDirection: bob receives on a connection that the node offers, and sends on another one.
func TestAConnectionForEachDirection(t *testing.T) {
	s := newStage(t, "one")
	aliceStream, _ := s.attach("room", "alice", 1)
	alice := newMediaClient(t, 'a', true, 2)
	alice.negotiate(aliceStream, nil)
	alice.goSend()
	aliceStream.awaitConnected()

	stream, _ := s.attach("room", "bob", 1)
	down, up := newMediaClient(t, 'b', false, 2), newMediaClient(t, 'b', true, 1)
	met := down.offerMessage(nil)
	unmet := &control.Offer{Id: "unmet", Sdp: regexp.MustCompile(`(a=ice-ufrag:|a=ice-pwd:)\S+`).ReplaceAllString(met.GetSdp(), "${1}"+strings.Repeat("x", 24)), Part: control.Part_PART_DOWNLINK_UNMET, SlotsWait: true}
	unmet.Sdp = regexp.MustCompile(`(a=fingerprint:sha-256 )\S+`).ReplaceAllString(unmet.GetSdp(), "${1}"+strings.Repeat("00:", 31)+"00")
	ask := func(o *control.Offer) string {
		stream.send(&control.PeerMessage{Message: &control.PeerMessage_Offer{Offer: o}})
		return stream.awaitAnswer(o.GetId())
	}
	offered := ask(unmet)
	met.Part, met.SlotsWait = control.Part_PART_DOWNLINK, true
	for _, prefix := range []string{"a=ice-ufrag:", "a=ice-pwd:", "a=fingerprint:"} {
		if answer := ask(met); line(answer, prefix) != line(offered, prefix) {
			t.Fatalf("the client was offered %q, which has become %q", line(offered, prefix), line(answer, prefix))
		}
	}
	down.accept(offered)
	stream.awaitConnected()
	var mids []string
	eventually(t, "alice is in bob's slots", func() bool {
		mids = nil
		for _, slot := range stream.lastSlots() {
			if slot.GetPeer() == "alice" {
				mids = append(mids, slot.GetMid())
			}
		}
		return len(mids) == 2
	})
	sent := up.offerMessage(nil)
	sent.Id, sent.Part = "up", control.Part_PART_UPLINK
	up.accept(ask(sent))
	up.goSend()
	eventually(t, "alice sees bob", func() bool { return alice.sees('b', 20) })
	if down.sees('a', 1) {
		t.Error("bob gets what he has not been offered")
	}
	stream.send(&control.PeerMessage{Message: &control.PeerMessage_Refresh{Refresh: &control.Refresh{Mids: mids}}})
	eventually(t, "bob sees alice", func() bool { return down.sees('a', 20) })
	if up.sees('a', 1) {
		t.Error("bob receives on the connection that he sends on")
	}

	// Another downlink is another client's, whose uplink is yet to come.
	again := newMediaClient(t, 'b', false, 1).offerMessage(nil)
	again.Id, again.Fresh, again.Part = "again", true, control.Part_PART_DOWNLINK_UNMET
	ask(again)
	s.node.mu.Lock()
	r := s.node.rooms["room"]
	s.node.mu.Unlock()
	if err := r.do(t.Context(), func() {
		if p := r.peers["bob"]; p.uplink != nil || p.connection == nil {
			t.Error("bob's former uplink stays")
		}
	}); err != nil {
		t.Fatal(err)
	}
}
