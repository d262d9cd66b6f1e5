package sfu

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/connection"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
	"github.com/holdfast-rtc/holdfast/sfu/offer"
)

// TestOffersMadeToCostAreRefused: what is cheap to write and dear to read.
func TestOffersMadeToCostAreRefused(t *testing.T) {
	lines := func(n int, format string) string {
		var text strings.Builder
		for i := range n {
			fmt.Fprintf(&text, format, i)
		}
		return text.String()
	}
	video := plainOffer[strings.Index(plainOffer, "m=video"):]
	for name, tc := range map[string]struct{ offer, word string }{
		"200 m-lines":     {plainOffer + lines(200, strings.Replace(video, "a=mid:1", "a=mid:x%d", 1)), "slots"},
		"200 own m-lines": {plainOffer + lines(200, strings.NewReplacer("a=mid:1", "a=mid:x%d", "a=recvonly", "a=sendonly").Replace(video)), "m-lines beside the slots"},
		"old data":        {strings.Split(plainOffer, "m=")[0] + "m=application 9 DTLS/SCTP 5000\r\nc=IN IP4 0.0.0.0\r\na=mid:0\r\na=sctpmap:5000 webrtc-datachannel 1024\r\n", "webrtc-datachannel"},
		"1 MB":            {plainOffer + strings.Repeat("a=x\r\n", 200_000), "bytes"},
		"not SDP":         {"hello", "not SDP"},
	} {
		_, err := offer.Read(tc.offer, offerLimits(DefaultConfig().Limits))
		if err == nil {
			t.Errorf("an offer with %s was read", name)
			continue
		}
		told := rejection("1", err)
		if told.GetNodeFault() || !strings.Contains(told.GetMessage(), tc.word) || strings.Count(told.GetMessage()+" ", ". ") < 2 || !strings.HasPrefix(told.GetMessage(), "The ") {
			t.Errorf("an offer with %s is refused with %q, want %q in it, and what to do", name, told.GetMessage(), tc.word)
		}
	}
}

// TestAnOfferThatBreaksAnsweringHarmsNobodyElse: the peer is told, has one more try, and the others' calls go on.
func TestAnOfferThatBreaksAnsweringHarmsNobodyElse(t *testing.T) {
	s := newStage(t, "one")
	aliceStream, _ := s.attach("room", "alice", 1)
	alice := newMediaClient(t, 'a', true, 1)
	alice.negotiate(aliceStream, nil)
	alice.goSend()
	aliceStream.awaitConnected()
	good := s.connectionOf("room", "alice")
	bobStream, _ := s.attach("room", "bob", 1)
	offerOf := func(tag byte) *control.Offer { return newMediaClient(t, tag, true, 1).offerMessage(nil) }
	for i := range byte(2) {
		message := offerOf('0' + i)
		o, err := offer.Read(message.GetSdp(), offerLimits(s.node.cfg.Limits))
		if err != nil {
			t.Fatal(err)
		}
		// It lacks the room, so answering panics.
		broken, err := connection.Open(s.node.transport, o, connection.Config{Owner: looseOwner{}, CanSubscribe: true, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(broken.Close)
		s.haveConnection("room", "bob", broken)
		bobStream.send(&control.PeerMessage{Message: &control.PeerMessage_Offer{Offer: message}})
		event := bobStream.await("a refusal", func(e *control.PeerEvent) bool { return e.GetOfferRejected() != nil })
		if !event.GetOfferRejected().GetNodeFault() {
			t.Errorf("offer %d is refused as the client's fault: %s", i, event.GetOfferRejected().GetMessage())
		}
		s.haveConnection("room", "bob", nil)
	}
	bobStream.send(&control.PeerMessage{Message: &control.PeerMessage_Offer{Offer: offerOf('b')}})
	bobStream.await("a refusal for good", func(e *control.PeerEvent) bool { return e.GetOfferRejected() != nil })
	if s.connectionOf("room", "alice") != good || !good.Alive() {
		t.Error("another peer's connection was given up")
	}
	carolStream, _ := s.attach("room", "carol", 1)
	carol := newMediaClient(t, 'c', false, 2)
	carol.negotiate(carolStream, nil)
	eventually(t, "a newcomer sees alice", func() bool { return carol.sees('a', 10) })
}

// haveConnection gives a peer a connection that nothing made.
func (s *stage) haveConnection(roomID, peerID string, c *connection.Connection) {
	s.t.Helper()
	s.node.mu.Lock()
	r := s.node.rooms[ring.RoomID(roomID)]
	s.node.mu.Unlock()
	if err := r.do(s.t.Context(), func() { r.peers[forward.PeerID(peerID)].connection = c }); err != nil {
		s.t.Fatal(err)
	}
}

// TestAMuteFloodIsToldInPieces: the others hear few of a thousand changes, and the last one.
func TestAMuteFloodIsToldInPieces(t *testing.T) {
	s := newStage(t, "one")
	wild, _ := s.attach("room", "wild", 1)
	other, _ := s.attach("room", "other", 1)
	const changes = 1001
	for i := range changes {
		wild.send(&control.PeerMessage{Message: &control.PeerMessage_Mute{Mute: &control.Mute{Source: control.Source_SOURCE_MICROPHONE, Muted: i%2 == 0}}})
	}
	wild.send(&control.PeerMessage{Message: &control.PeerMessage_Mute{Mute: &control.Mute{Source: control.Source_SOURCE_CAMERA, Muted: true}}})
	told := 0
	other.await("the last word of the flood", func(e *control.PeerEvent) bool {
		entry := e.GetRosterChange().GetUpdated()
		if entry != nil {
			told++
		}
		return entry.GetAudioMuted() && entry.GetVideoMuted()
	})
	if told > changes/10 {
		t.Errorf("the others were told %d times of %d changes", told, changes)
	}
}

// TestAPublisherGoneWildIsHeldBack has one microphone send as fast as it can while
// another talks: the others hear a fraction of the first and all of the second.
func TestAPublisherGoneWildIsHeldBack(t *testing.T) {
	s := newStage(t, "one")
	wildStream, _ := s.attach("room", "wild", 1)
	wild := newMediaClient(t, 'w', true, 0)
	wild.negotiate(wildStream, nil)
	wildStream.awaitConnected()
	calmStream, _ := s.attach("room", "calm", 1)
	calm := newMediaClient(t, 'c', true, 0)
	calm.negotiate(calmStream, nil)
	calm.goSend()
	listenerStream, _ := s.attach("room", "listener", 1)
	listener := newMediaClient(t, 'l', false, 2)
	listener.negotiate(listenerStream, nil)
	eventually(t, "the listener hears the calm one", func() bool { return listener.sees('c', 10) })
	began := time.Now()
	const flood = 20_000
	for i := range uint16(flood) {
		if err := wild.tracks[0].WriteRTP(wild.packet(wild.tracks[0], 0, i)); err != nil {
			t.Fatal(err)
		}
	}
	listener.forget()
	eventually(t, "the listener still hears the calm one", func() bool { return listener.sees('c', 30) })
	held := s.rooms().GetRooms()[0]
	took := time.Since(began)
	const burst, perSecond = 500, 500 // as sfu/connection lets through of sound
	most := uint64(burst + perSecond*(took.Seconds()+1))
	// The calm one's sound and picture are forwarded too, 50 a second each, from before the flood on.
	if got := held.GetPacketsForwarded(); got > 2*most {
		t.Errorf("%d packets were forwarded of a flood of %d, want at most %d", got, flood, 2*most)
	}
	if dropped := held.GetPacketsDropped(); dropped != 0 && took < patience/4 { // else the machine stood still: it takes a second
		t.Errorf("%d packets were dropped, want none", dropped)
	}
}

// FuzzPeerMessage lets two messages of a signaling node come as they may: the first that opens the
// stream, under a good pin so that it gets past the door, and one after it.
func FuzzPeerMessage(f *testing.F) {
	s := newStage(f, "one", func(c *Config) { c.Limits.Rooms, c.Limits.PeersPerRoom = 50, 20 })
	s.attach("room", "alice", 1) // The node is running when somebody could attach.
	seed := func(messages ...*control.PeerMessage) {
		var texts [2][]byte
		for i, m := range messages {
			text, err := proto.Marshal(m)
			if err != nil {
				f.Fatal(err)
			}
			texts[i] = text
		}
		f.Add(texts[0], texts[1])
	}
	p := s.pin(s.epoch)
	first := s.attachMessage(p, "room", "bob", 2)
	first.GetAttach().Expected = []*control.Peer{{Id: "carol"}, nil, {}}
	seed(first, &control.PeerMessage{Message: &control.PeerMessage_Offer{Offer: &control.Offer{Id: "1", Sdp: plainOffer}}})
	seed(first, &control.PeerMessage{Message: &control.PeerMessage_View{View: &control.View{Wants: []*control.Want{{Peer: "alice", Source: 2, Width: 1 << 31}, nil}}}})
	seed(first, &control.PeerMessage{Message: &control.PeerMessage_Mute{Mute: &control.Mute{Source: 99, Muted: true}}})
	seed(first, &control.PeerMessage{Message: &control.PeerMessage_Leave{}})
	seed(first, first)
	seed(&control.PeerMessage{}, &control.PeerMessage{})
	f.Fuzz(func(t *testing.T, one, two []byte) {
		var message, next control.PeerMessage
		if proto.Unmarshal(one, &message) != nil || proto.Unmarshal(two, &next) != nil {
			return
		}
		message.Fence, next.Fence = control.FenceProto(p.Fence), control.FenceProto(p.Fence)
		if a := message.GetAttach(); a != nil {
			a.Pin = control.PinProto(p)
		}
		session, refused := s.node.attach(t.Context(), &message)
		if (session == nil) == (refused == nil) {
			t.Fatalf("attach gives %v and %v", session, refused)
		}
		if refused != nil {
			_ = refused.event()
			return
		}
		written := make(chan error, 1)
		go func() { written <- session.outbox.drain(func(*control.PeerEvent) error { return nil }) }()
		session.handle(t.Context(), &next)
		// Leave, so that the room does not fill with what the fuzzer calls people.
		session.handle(t.Context(), &control.PeerMessage{Fence: next.Fence, Message: &control.PeerMessage_Leave{Leave: &control.Leave{}}})
		session.end()
		<-written
		if s.node.panics.Count() > 0 {
			t.Fatal("the handling of it panics")
		}
	})
}
