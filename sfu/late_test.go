package sfu

import (
	"strings"
	"testing"
	"time"

	"github.com/pion/rtp"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/connection"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/sources"
)

// bobsOffer opens a room with bob, and with an offer of his that the room's loop has let through.
func (s *stage) bobsOffer(message *control.Offer) (in *room, n *negotiation) {
	s.t.Helper()
	s.attach("room", "alice", 1)
	s.attach("room", "bob", 1)
	s.onLoop("room", func(r *room) {
		in, n = r, &negotiation{session: &session{room: r, peer: r.peers["bob"]}, message: message, canPublish: true, canSubscribe: true}
	})
	return in, n
}

// leavesNothing fails the test if the media plane remembers bob.
func leavesNothing(t *testing.T, r *room) {
	t.Helper()
	if state, there := r.media.States()["bob"]; there || r.media.Table("bob") != nil {
		t.Errorf("the media plane keeps %+v and the table %v of who was removed", state, r.media.Table("bob"))
	}
}

// TestAnOfferOfWhoIsRemovedLeavesNothing: bob is removed while his offer is answered.
func TestAnOfferOfWhoIsRemovedLeavesNothing(t *testing.T) {
	s := newStage(t, "one")
	in, n := s.bobsOffer(&control.Offer{
		Id: "1", Sdp: plainOffer, Slots: []*control.Slot{{Mid: "1", Peer: "alice", Source: control.Source_SOURCE_CAMERA}},
	})
	s.onLoop("room", func(r *room) { r.people.remove(r.peers["bob"], "of a test") })
	if _, err := n.run(t.Context()); err == nil {
		t.Error("the offer of who is gone was answered")
	}
	leavesNothing(t, in)
}

// TestAStreamOfWhoIsRemovedLeavesNothing: bob's track begins after he was removed, before his connection is closed.
func TestAStreamOfWhoIsRemovedLeavesNothing(t *testing.T) {
	s := newStage(t, "one")
	sdp := strings.Replace(plainOffer, "a=mid:1\r\na=recvonly", "a=mid:1\r\na=sendonly\r\na=ssrc:1 cname:x", 1)
	in, n := s.bobsOffer(&control.Offer{Id: "1", Sdp: sdp})
	if _, err := n.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	header := rtp.Header{Version: 2, SSRC: 1, PayloadType: 96}
	packet, err := (&rtp.Packet{Header: header, Payload: make([]byte, 40)}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	var c *connection.Connection
	s.onLoop("room", func(r *room) {
		bob := r.peers["bob"]
		c, bob.connection = bob.connection, nil // The test closes it, at the end.
		c.Silence(sources.Bit(forward.SourceCamera))
		c.RTP(&header, packet, time.Now()) // The stream has its place, and no layer.
		c.Silence(0)
		r.people.remove(bob, "of a test")
		c.RTP(&header, packet, time.Now())
	})
	leavesNothing(t, in)
	c.Close()
}
