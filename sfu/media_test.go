package sfu

import (
	"slices"
	"strings"
	"testing"

	"github.com/pion/dtls/v3"
	"github.com/pion/webrtc/v4"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/connection"
)

func TestTwoPeersSeeEachOtherWithoutRenegotiation(t *testing.T) {
	for _, address := range []string{"127.0.0.1:0", ":0"} {
		t.Run("bound to "+address, func(t *testing.T) { meet(t, address) })
	}
}

func meet(t *testing.T, address string) {
	s := newStage(t, "one", func(c *Config) { c.MediaAddress = address })
	aliceStream, _ := s.attach("room", "alice", 1)
	alice := newMediaClient(t, 'a', true, 2)
	alice.negotiate(aliceStream, nil)
	alice.goSend()
	aliceStream.awaitConnected()
	bobStream, _ := s.attach("room", "bob", 1)
	bob := newMediaClient(t, 'b', true, 2)
	bob.negotiate(bobStream, nil)
	bob.goSend()
	aliceStream.await("bob in alice's slots", func(e *control.PeerEvent) bool {
		for _, slot := range e.GetSlots().GetSlots() {
			if slot.GetPeer() == "bob" && slot.GetSource() == control.Source_SOURCE_CAMERA {
				return true
			}
		}
		return false
	})
	eventually(t, "alice sees bob", func() bool { return alice.sees('b', 20) })
	eventually(t, "bob sees alice", func() bool { return bob.sees('a', 20) })
	if alice.offers != 1 || bob.offers != 1 {
		t.Errorf("%d and %d offers, want one each", alice.offers, bob.offers)
	}
	held := s.rooms().GetRooms()[0]
	for _, p := range held.GetPeers() {
		if !p.GetAttached() || !p.GetConnected() || p.GetOffers() != 1 {
			t.Errorf("the node says of a peer: %v", p)
		}
	}
	s.toldOfMedia(t)
	s.toldBriefly(t)
	if held.GetPacketsForwarded() == 0 || held.GetPacketsDropped() != 0 {
		t.Errorf("forwarded %d, dropped %d", held.GetPacketsForwarded(), held.GetPacketsDropped())
	}
}

// toldOfMedia checks what the node says, when asked, of two people who see each other.
func (s *stage) toldOfMedia(t *testing.T) {
	t.Helper()
	reply, err := s.client.Rooms(t.Context(), &control.RoomsRequest{Media: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range reply.GetRooms()[0].GetPeers() {
		if p.GetTransport() != "udp" || p.GetSignaling() != "signaling-7" {
			t.Errorf("%s is told to be over %q at %q", p.GetId(), p.GetTransport(), p.GetSignaling())
		}
		media := p.GetMedia()
		if len(media.GetTracks()) != 2 || len(media.GetSlots()) != 4 || len(media.GetUnplaced()) != 0 {
			t.Fatalf("%s has %d tracks, %d slots and %d streams in no track: %v", p.GetId(), len(media.GetTracks()), len(media.GetSlots()), len(media.GetUnplaced()), media)
		}
		for _, slot := range media.GetSlots() {
			if slot.GetPeer() != "" && (slot.GetWaits() != "" || slot.GetPacketsOut() == 0 || slot.GetPacketsIn() == 0 || !slot.GetReady()) {
				t.Errorf("a slot that is seen: %v", slot)
			}
		}
		for _, track := range media.GetTracks() {
			if track.GetPacketsIn() == 0 || track.GetHeardMsAgo() < 0 {
				t.Errorf("a track that is seen: %v", track)
			}
		}
	}
}

// toldBriefly checks what the node says when asked for no more than counts, and for one room.
func (s *stage) toldBriefly(t *testing.T) {
	t.Helper()
	for room, want := range map[string]int{"": 1, "room": 1, "another": 0} {
		reply, err := s.client.Rooms(t.Context(), &control.RoomsRequest{Brief: true, Room: room})
		if err != nil {
			t.Fatal(err)
		}
		if rooms := reply.GetRooms(); len(rooms) != want || want > 0 && (len(rooms[0].GetPeers()) != 0 || rooms[0].GetPeople() != 2 || rooms[0].GetConnected() != 2) {
			t.Errorf("of %q the node briefly says: %v", room, rooms)
		}
	}
}

func TestSimulcastLayersArePublished(t *testing.T) {
	s := newStage(t, "one")
	aliceStream, _ := s.attach("room", "alice", 1)
	alice := newMediaClient(t, 'p', true, 0, "q", "h", "f")
	alice.negotiate(aliceStream, nil)
	alice.goSend()
	bobStream, _ := s.attach("room", "bob", 1)
	bob := newMediaClient(t, 'b', false, 1)
	bob.negotiate(bobStream, nil)
	eventually(t, "bob sees a layer of alice", func() bool { return bob.seesOneOf("pqr") })
}

// What a browser sends after a move: layers without MID and RID extensions, of which
// only the client knows what they are.
func TestLayersThatTheClientNamedNeedNoExtensions(t *testing.T) {
	s := newStage(t, "one")
	aliceStream, _ := s.attach("room", "alice", 1)
	alice := newMediaClient(t, 'p', true, 0, "q", "h", "f")
	alice.unnamed = true
	for _, encoding := range alice.pc.GetSenders()[1].GetParameters().Encodings {
		alice.senders = append(alice.senders, &control.Sender{
			Mid: "1", Source: control.Source_SOURCE_CAMERA, Rid: encoding.RID, Ssrc: uint32(encoding.SSRC), RtxSsrc: uint32(encoding.RTX.SSRC),
		})
	}
	alice.negotiate(aliceStream, nil)
	alice.goSend()
	bobStream, _ := s.attach("room", "bob", 1)
	bob := newMediaClient(t, 'b', false, 1)
	bob.negotiate(bobStream, nil)
	eventually(t, "bob sees a layer of alice", func() bool { return bob.seesOneOf("pqr") })
}

func TestUnusedSlotsKeepTheirSSRCs(t *testing.T) {
	s := newStage(t, "one")
	e, _ := s.attach("room", "alice", 1)
	message := newMediaClient(t, 'a', true, 3).offerMessage(nil)
	message.Unused = []*control.UnusedSlot{{Mid: "3", Ssrc: 41, RtxSsrc: 42}, {Mid: "5", Ssrc: 41, RtxSsrc: 43}, {Mid: "9", Ssrc: 44}}
	e.send(&control.PeerMessage{Message: &control.PeerMessage_Offer{Offer: message}})
	groups := map[string]string{}
	for section := range strings.SplitSeq(e.awaitAnswer(message.GetId()), "m=") {
		_, rest, _ := strings.Cut(section, "a=mid:")
		mid, rest, _ := strings.Cut(rest, "\r\n")
		_, rest, _ = strings.Cut(rest, "a=ssrc-group:FID ")
		groups[mid], _, _ = strings.Cut(rest, "\r\n")
	}
	// Two slots cannot have the same.
	if one, two, ok := strings.Cut(groups["5"], " "); groups["3"] != "41 42" || !ok || one == "41" || two != "43" {
		t.Errorf("SSRCs and those of retransmissions by mid: %v", groups)
	}
}

func TestAnswersNameEverySlot(t *testing.T) {
	s := newStage(t, "one")
	e, _ := s.attach("room", "alice", 1)
	alice := newMediaClient(t, 'a', true, 3)
	offer := alice.offerMessage(nil)
	e.send(&control.PeerMessage{Message: &control.PeerMessage_Offer{Offer: offer}})
	sdp := e.awaitAnswer(offer.GetId())
	sections := strings.Split(sdp, "m=")[1:]
	if len(sections) != 8 {
		t.Fatalf("%d m-lines, want 8", len(sections))
	}
	for _, section := range sections[2:] {
		if !strings.Contains(section, "a=sendonly") || !strings.Contains(section, "a=ssrc:") {
			t.Errorf("a slot is answered without a stream:\n%s", section)
		}
	}
	for _, section := range sections[:2] {
		if !strings.Contains(section, "a=recvonly") || !strings.Contains(section, "a=setup:active") {
			t.Errorf("an m-line of the client is answered with\n%s", section)
		}
	}
	if !strings.Contains(sdp, "127.0.0.1") {
		t.Errorf("no candidate in the answer:\n%s", sdp)
	}
	eventually(t, "alice is told of her slots", func() bool { return len(e.lastSlots()) == 6 })
	// The same offer again, as a signaling node that reconnected would send it.
	again, attached := s.attach("room", "alice", 2)
	if !attached.GetResumed() || len(attached.GetSlots()) != 6 {
		t.Errorf("attached = %v", attached)
	}
	again.send(&control.PeerMessage{Message: &control.PeerMessage_Offer{Offer: offer}})
	if again.awaitAnswer(offer.GetId()) != sdp {
		t.Error("an offer sent twice got two answers")
	}
	if p := s.heldPeer("room", "alice"); p.GetOffers() != 1 {
		t.Errorf("%d offers answered, want 1", p.GetOffers())
	}
}

func TestRestartOnTheSameNodeKeepsTheConnection(t *testing.T) {
	s := newStage(t, "one")
	e, _ := s.attach("room", "alice", 1)
	alice := newMediaClient(t, 'a', true, 1)
	alice.negotiate(e, nil)
	alice.goSend()
	e.awaitConnected()
	before := s.connectionOf("room", "alice")
	alice.negotiate(e, &webrtc.OfferOptions{ICERestart: true})
	if s.connectionOf("room", "alice") != before {
		t.Error("an ICE restart got a new connection")
	}
	// More slots on the live connection.
	alice.addSlot(webrtc.RTPCodecTypeVideo)
	alice.addSlot(webrtc.RTPCodecTypeAudio)
	alice.negotiate(e, nil)
	if s.connectionOf("room", "alice") != before {
		t.Error("a renegotiation got a new connection")
	}
	bobStream, _ := s.attach("room", "bob", 1)
	bob := newMediaClient(t, 'b', true, 1)
	bob.negotiate(bobStream, nil)
	bob.goSend()
	eventually(t, "bob sees alice", func() bool { return bob.sees('a', 10) })
	eventually(t, "alice sees bob", func() bool { return alice.sees('b', 10) })
	// Another RTCPeerConnection of the same person replaces the first.
	fresh := newMediaClient(t, 'f', true, 1)
	offer := fresh.offerMessage(nil)
	offer.Fresh = true
	e.send(&control.PeerMessage{Message: &control.PeerMessage_Offer{Offer: offer}})
	fresh.accept(e.awaitAnswer(offer.GetId()))
	fresh.goSend()
	eventually(t, "bob sees alice's new connection", func() bool { return bob.sees('f', 10) })
	eventually(t, "the new connection sees bob", func() bool { return fresh.sees('b', 10) })
}

func TestMediaOutlivesTheSignalingNode(t *testing.T) {
	s := newStage(t, "one")
	aliceStream, _ := s.attach("room", "alice", 1)
	alice := newMediaClient(t, 'a', true, 1)
	alice.negotiate(aliceStream, nil)
	alice.goSend()
	bobStream, _ := s.attach("room", "bob", 1)
	bob := newMediaClient(t, 'b', true, 1)
	bob.negotiate(bobStream, nil)
	bob.goSend()
	eventually(t, "they see each other", func() bool { return alice.sees('b', 10) && bob.sees('a', 10) })
	bobStream.cancel()
	eventually(t, "bob has no stream", func() bool { return !s.heldPeer("room", "bob").GetAttached() })
	alice.forget()
	bob.forget()
	eventually(t, "they go on seeing each other", func() bool { return alice.sees('b', 20) && bob.sees('a', 20) })
	if p := s.heldPeer("room", "bob"); !p.GetConnected() {
		t.Errorf("the node says of bob: %v", p)
	}
	again, attached := s.attach("room", "bob", 2)
	if !attached.GetResumed() {
		t.Error("bob was not resumed")
	}
	shown := 0
	for _, slot := range attached.GetSlots() {
		if slot.GetPeer() == "alice" {
			shown++
		}
	}
	if shown != 2 {
		t.Errorf("bob's slots are said to be %v", attached.GetSlots())
	}
	again.send(&control.PeerMessage{Message: &control.PeerMessage_Leave{Leave: &control.Leave{}}})
	aliceStream.await("alice's slots are empty", func(e *control.PeerEvent) bool {
		for _, slot := range e.GetSlots().GetSlots() {
			if slot.GetPeer() != "" {
				return false
			}
		}
		return e.GetSlots() != nil
	})
}

func TestAFreshNodeAnswersARestart(t *testing.T) {
	first, second := newStage(t, "one"), newStage(t, "two")
	e, _ := first.attach("room", "alice", 1)
	alice := newMediaClient(t, 'a', true, 2)
	alice.negotiate(e, nil)
	alice.goSend()
	e.awaitConnected()
	before := alice.pc.RemoteDescription().SDP
	second.epoch++
	moved, attached := second.attach("room", "alice", 2)
	if attached.GetResumed() {
		t.Error("a node that has never seen the peer resumed it")
	}
	offer := alice.offerMessage(&webrtc.OfferOptions{ICERestart: true})
	offer.Slots = []*control.Slot{{Mid: "3", Kind: control.Kind_KIND_VIDEO, Peer: "bob", Source: control.Source_SOURCE_CAMERA}}
	moved.send(&control.PeerMessage{Message: &control.PeerMessage_Offer{Offer: offer}})
	after := moved.awaitAnswer(offer.GetId())
	if a, b := shapeOf(before), shapeOf(after); a != b {
		t.Errorf("the nodes answer differently:\n%s\n%s", a, b)
	}
	if line(before, "a=fingerprint:") == line(after, "a=fingerprint:") {
		t.Error("two connections share a certificate: browsers would keep their old DTLS session")
	}
}

func TestWhoMayNotPublishOrSubscribe(t *testing.T) {
	s := newStage(t, "one")
	muteStream, _ := s.attach("room", "mute", 1, func(a *control.Attach) { a.CanPublish = false })
	mute := newMediaClient(t, 'm', true, 2)
	mute.negotiate(muteStream, nil)
	mute.goSend()
	deafStream, _ := s.attach("room", "deaf", 1, func(a *control.Attach) { a.CanSubscribe = false })
	deaf := newMediaClient(t, 'd', true, 2)
	deaf.negotiate(deafStream, nil)
	deaf.goSend()
	freeStream, _ := s.attach("room", "free", 1)
	free := newMediaClient(t, 'f', true, 2)
	free.negotiate(freeStream, nil)
	free.goSend()
	eventually(t, "the one who may not publish sees the others", func() bool { return mute.sees('d', 20) && mute.sees('f', 20) })
	eventually(t, "the one who may do both sees who may publish", func() bool { return free.sees('d', 20) })
	deafStream.awaitConnected()
	if free.seesOneOf("m") || free.sees('m', 1) {
		t.Error("what may not be published was forwarded")
	}
	if deaf.seesOneOf("mf") || deaf.sees('f', 1) {
		t.Error("somebody who may not subscribe sees others")
	}
}

// TestOnlyTheSourcesOfTheTokenAreForwarded: whatever the client sends, and whatever it calls it.
func TestOnlyTheSourcesOfTheTokenAreForwarded(t *testing.T) {
	s := newStage(t, "one")
	bobStream, _ := s.attach("room", "bob", 1)
	bob := newMediaClient(t, 'b', true, 2)
	bob.negotiate(bobStream, nil)
	bobStream.awaitConnected()
	const microphone, screen = 1 << 0, 1 << 2
	aliceStream, _ := s.attach("room", "alice", 1, func(a *control.Attach) { a.Sources = microphone | screen })
	alice := newMediaClient(t, 'a', true, 1)
	alice.negotiate(aliceStream, nil)
	alice.goSend()
	sent := func() map[control.Source]bool {
		tracks := map[control.Source]bool{}
		reply, err := s.client.Rooms(t.Context(), &control.RoomsRequest{Media: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range reply.GetRooms()[0].GetPeers() {
			for _, track := range p.GetMedia().GetTracks() {
				tracks[track.GetSource()] = track.GetPacketsIn() > 20
			}
		}
		return tracks
	}
	eventually(t, "the node forwards her sound", func() bool { return sent()[control.Source_SOURCE_MICROPHONE] })
	if _, camera := sent()[control.Source_SOURCE_CAMERA]; camera {
		t.Error("a camera that may not be published has a track")
	}
	for _, slot := range bobStream.lastSlots() {
		if slot.GetPeer() == "alice" && slot.GetKind() == control.Kind_KIND_VIDEO {
			t.Errorf("a camera that may not be published is shown in %v", slot)
		}
	}
}

func TestBadOffersHarmNobody(t *testing.T) {
	s := newStage(t, "one", func(c *Config) { c.Limits.SlotsPerPeer = 4 })
	e, _ := s.attach("room", "alice", 1)
	alice := newMediaClient(t, 'a', true, 1)
	alice.negotiate(e, nil)
	alice.goSend()
	e.awaitConnected()
	before := s.connectionOf("room", "alice")
	greedy := newMediaClient(t, 'g', false, 3).offerMessage(nil).GetSdp()
	fine := alice.pc.LocalDescription().SDP
	for name, sdp := range map[string]string{
		"empty": "", "garbage": "\x00garbage", "greedy": greedy,
		"without ICE":        strings.ReplaceAll(fine, "a=ice-ufrag", "a=x-ufrag"),
		"with a mid twice":   strings.Replace(fine, "a=mid:1", "a=mid:0", 1),
		"a truncated one":    fine[:strings.LastIndex(fine, "m=")],
		"of another m-line":  strings.Replace(fine, "m=audio", "m=application", 1),
		"with a broken hash": strings.Replace(fine, "a=fingerprint:sha-256 ", "a=fingerprint:sha-256", 1),
	} {
		offer := &control.Offer{Id: "bad " + name, Sdp: sdp}
		e.send(&control.PeerMessage{Message: &control.PeerMessage_Offer{Offer: offer}})
		event := e.await("a reply to the offer "+name, func(e *control.PeerEvent) bool { return e.GetOfferRejected() != nil || e.GetAnswer() != nil })
		if event.GetOfferRejected().GetMessage() == "" {
			t.Errorf("an offer %s was answered", name)
		}
	}
	if s.connectionOf("room", "alice") != before {
		t.Error("a bad offer cost the peer its connection")
	}
	bobStream, _ := s.attach("room", "bob", 1)
	bob := newMediaClient(t, 'b', true, 1)
	bob.negotiate(bobStream, nil)
	bob.goSend()
	eventually(t, "bob sees alice", func() bool { return bob.sees('a', 10) })
	alice.negotiate(e, nil)
	eventually(t, "alice sees bob", func() bool { return alice.sees('b', 10) })
}

// connectionOf is the connection of a peer.
func (s *stage) connectionOf(roomID, peerID string) *connection.Connection {
	s.t.Helper()
	var c *connection.Connection
	for _, h := range s.node.Held() {
		if string(h.Room) != roomID {
			continue
		}
		s.node.mu.Lock()
		r := s.node.rooms[h.Room]
		s.node.mu.Unlock()
		if err := r.do(s.t.Context(), func() {
			for id, p := range r.peers {
				if string(id) == peerID {
					c = p.connection
				}
			}
		}); err != nil {
			s.t.Fatal(err)
		}
	}
	return c
}

// shapeOf is what must not change between two answers to one connection: the
// m-lines with their payload types, mids, directions, extensions and codecs. The
// order of payload types and extensions within an m-line is Pion's whim.
func shapeOf(sdp string) string {
	var shape []string
	for section := range strings.SplitSeq(sdp, "\r\nm=") {
		var kept []string
		for i, l := range strings.Split(section, "\r\n") {
			if i == 0 {
				words := strings.Fields(l)
				slices.Sort(words)
				kept = append(kept, strings.Join(words, " "))
			}
			for _, keep := range []string{"a=mid:", "a=extmap", "a=rtpmap", "a=fmtp", "a=rtcp-fb", "a=setup", "a=sendonly", "a=recvonly", "a=group"} {
				if strings.HasPrefix(l, keep) {
					kept = append(kept, l)
				}
			}
		}
		slices.Sort(kept)
		shape = append(shape, strings.Join(kept, "\n"))
	}
	return strings.Join(shape, "\n\n")
}

func line(sdp, prefix string) string {
	for l := range strings.SplitSeq(sdp, "\r\n") {
		if strings.HasPrefix(l, prefix) {
			return l
		}
	}
	return ""
}

// TestAClientWithoutGCMGetsInAtItsSecondConnection: the first offers AES-128-GCM alone, for what else is offered the browsers
// would take. Its handshake fails, the node says so, and the client's next connection is offered the older profile.
func TestAClientWithoutGCMGetsInAtItsSecondConnection(t *testing.T) {
	s := newStage(t, "one")
	older := []dtls.SRTPProtectionProfile{dtls.SRTP_AES128_CM_HMAC_SHA1_80}
	aliceStream, _ := s.attach("room", "alice", 1)
	newMediaClientWith(t, older, 'a', true, 1).negotiate(aliceStream, nil)
	aliceStream.await("the first connection fails", func(e *control.PeerEvent) bool {
		return e.GetTransport().GetState() == control.TransportState_TRANSPORT_STATE_FAILED
	})
	alice := newMediaClientWith(t, older, 'A', true, 1)
	alice.offers = 1 // Another id than that of the first connection's offer.
	alice.negotiate(aliceStream, nil)
	alice.goSend()
	aliceStream.awaitConnected()
	bobStream, _ := s.attach("room", "bob", 1)
	bob := newMediaClient(t, 'b', false, 1)
	bob.negotiate(bobStream, nil)
	eventually(t, "bob sees alice", func() bool { return bob.sees('A', 20) })
}
