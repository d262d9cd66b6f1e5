package livekit

import (
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/signaling/livekit/livekitpb"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// told returns the frames since the last call.
func (c *client) told() []*livekitpb.SignalResponse {
	frames := c.frames
	c.frames = nil
	return frames
}

func heard[M wire.Message](c *client) (found []M) {
	for _, m := range c.Take() {
		if m, ok := m.(M); ok {
			found = append(found, m)
		}
	}
	return found
}

func answersIn(frames []*livekitpb.SignalResponse) (answers []*livekitpb.SessionDescription, asked int) {
	for _, frame := range frames {
		if answer := frame.GetAnswer(); answer != nil {
			answers = append(answers, answer)
		}
		if frame.GetMediaSectionsRequirement() != nil {
			asked++
		}
	}
	return answers, asked
}

func TestTheRoomsMetadataAreTold(t *testing.T) {
	c := joined(t, &livekitpb.JoinRequest{})
	c.told()
	c.hear(&wire.RoomUpdated{Metadata: "lesson 2"})
	for _, frame := range c.told() {
		if room := frame.GetRoomUpdate().GetRoom(); room.GetMetadata() == "lesson 2" && strings.HasPrefix(room.GetSid(), "RM_") {
			return
		}
	}
	t.Error("the room's metadata are not told")
}

func TestTheJoinIsAnsweredAndTheEarlierPeerGoes(t *testing.T) {
	c := joined(t, &livekitpb.JoinRequest{
		AddTrackRequests: []*livekitpb.AddTrackRequest{{Cid: "mic", Source: livekitpb.TrackSource_MICROPHONE}},
		PublisherOffer:   &livekitpb.SessionDescription{Sdp: plainOffer, Id: 1},
	})
	frames := c.told()
	join := frames[0].GetJoin()
	if join.GetParticipant().GetSid() != "PA_p-1" || len(join.GetOtherParticipants()) != 1 || join.GetOtherParticipants()[0].GetIdentity() != "bob" || join.GetSubscriberPrimary() {
		t.Errorf("answered %v", join)
	}
	if frames[1].GetRefreshToken() != "renewed resume" {
		t.Errorf("then %v", frames[1])
	}
	if len(c.superseded) != 1 || c.superseded[0] != "p-0" {
		t.Errorf("superseded %v", c.superseded)
	}
	offers := heard[*wire.Offer](c)
	if len(offers) != 1 || !offers[0].Fresh || len(offers[0].Senders) != 1 || offers[0].Senders[0] != (wire.Sender{Mid: "0", Source: wire.SourceMicrophone}) {
		t.Fatalf("offered %+v", offers)
	}
	if sdp := offers[0].SDP; strings.Contains(sdp, "application") || !strings.Contains(sdp, "BUNDLE 2 1 0\r\n") || strings.Index(sdp, "mid:2") > strings.Index(sdp, "mid:0") {
		t.Errorf("the node gets\n%s", sdp)
	}
}

// TestDataChannelsAreTheNodes: a node that has them sees the client's behind its media, and answers for itself.
func TestDataChannelsAreTheNodes(t *testing.T) {
	c := newClient(t, &livekitpb.JoinRequest{PublisherOffer: &livekitpb.SessionDescription{Sdp: plainOffer, Id: 1}})
	c.Write(&wire.Joined{Room: "lobby", Peer: "p-1", Identity: "ann", Placement: wire.Placement{Data: true}})
	offers := heard[*wire.Offer](c)
	if sdp := offers[0].SDP; !strings.Contains(sdp, "BUNDLE 2 1 0 3\r\n") || strings.Index(sdp, "m=application") < strings.Index(sdp, "mid:0") || offers[0].Data {
		t.Errorf("the node gets\n%s", sdp)
	}
	data := "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:3\r\na=sctp-port:5000\r\n"
	c.Write(&wire.Answer{ID: offers[0].ID, SDP: plainAnswer + data})
	if err := c.Read(frameOf(t, &livekitpb.SignalRequest{Message: &livekitpb.SignalRequest_Trickle{Trickle: &livekitpb.TrickleRequest{}}})); err != nil {
		t.Fatal(err)
	}
	if answers, _ := answersIn(c.told()); len(answers) != 1 || !strings.Contains(answers[0].GetSdp(), data) || !strings.Contains(answers[0].GetSdp(), "BUNDLE 0 1 2 3\r\n") {
		t.Errorf("the client gets %v", answers)
	}
}

// TestASlotIsToldInRounds: a slot that begins takes one answer from memory, and one that changes takes two.
func TestASlotIsToldInRounds(t *testing.T) {
	c := joined(t, &livekitpb.JoinRequest{PublisherOffer: &livekitpb.SessionDescription{Sdp: plainOffer, Id: 1}})
	c.Write(&wire.Answer{ID: heard[*wire.Offer](c)[0].ID, SDP: plainAnswer})
	if early, _ := answersIn(c.told()); len(early) > 0 {
		t.Fatal("the answer does not wait until the client has set its offer")
	}
	if err := c.Read(frameOf(t, &livekitpb.SignalRequest{Message: &livekitpb.SignalRequest_Trickle{Trickle: &livekitpb.TrickleRequest{}}})); err != nil {
		t.Fatal(err)
	}
	answers, _ := answersIn(c.told())
	if len(answers) != 1 || strings.Contains(answers[0].GetSdp(), "sendonly") || !strings.Contains(answers[0].GetSdp(), "m=application 0 ") ||
		!strings.Contains(answers[0].GetSdp(), "BUNDLE 0 1 2\r\n") || strings.Index(answers[0].GetSdp(), "a=candidate") > strings.Index(answers[0].GetSdp(), "a=mid:1") {
		t.Fatalf("answered %v", answers)
	}
	round := func(what, mid, track string) {
		t.Helper()
		_, asked := answersIn(c.told())
		if asked != 1 {
			t.Fatalf("%s: asked for %d offers", what, asked)
		}
		if err := c.Read(frameOf(t, offerOf(plainOffer))); err != nil {
			t.Fatal(err)
		}
		if offers := heard[*wire.Offer](c); len(offers) > 0 {
			t.Fatalf("%s: the node was asked", what)
		}
		answers, asked := answersIn(c.frames)
		if len(answers) != 1 || answers[0].GetMidToTrackId()[mid] != track || answers[0].GetId() != 3 {
			t.Fatalf("%s: answered %v", what, answers)
		}
		if stream := "a=msid:PA_"; strings.Contains(answers[0].GetSdp(), stream) != (track != "") {
			t.Fatalf("%s: answered\n%s", what, answers[0].GetSdp())
		}
		if asked == 0 {
			c.told()
		}
	}
	show := func(source wire.Source) {
		mid, kind := "2", wire.KindVideo
		if source == wire.SourceMicrophone {
			mid, kind = "1", wire.KindAudio
		}
		c.Write(&wire.Slots{Slots: wire.List[wire.Slot]{{Mid: mid, Kind: kind, Peer: "p-2", Source: source}}})
	}
	show(wire.SourceCamera)
	round("camera", "2", "TR_Cp-2")
	show(wire.SourceScreen)
	round("the camera ends", "2", "")
	round("screen", "2", "TR_Sp-2")
	c.Write(&wire.Slots{})
	round("nothing", "2", "")
	if _, asked := answersIn(c.told()); asked != 0 {
		t.Error("an offer is asked for that tells nothing")
	}
}

func TestWhoIsSubscribedToIsWanted(t *testing.T) {
	c := joined(t, &livekitpb.JoinRequest{ConnectionSettings: &livekitpb.ConnectionSettings{AutoSubscribe: true}})
	c.Take()
	set := func(request *livekitpb.SignalRequest) wire.List[wire.Want] {
		t.Helper()
		if err := c.Read(frameOf(t, request)); err != nil {
			t.Fatal(err)
		}
		views := heard[*wire.View](c)
		if len(views) != 1 {
			t.Fatalf("%v: %d views", request, len(views))
		}
		return views[0].Wants
	}
	sized := set(&livekitpb.SignalRequest{Message: &livekitpb.SignalRequest_TrackSetting{
		TrackSetting: &livekitpb.UpdateTrackSettings{TrackSids: []string{"TR_Cp-2"}, Width: 320, Height: 180},
	}})
	if len(sized) != 1 || sized[0] != (wire.Want{Peer: "p-2", Source: wire.SourceCamera, Width: 320, Height: 180}) {
		t.Errorf("wants %v", sized)
	}
	deaf := set(&livekitpb.SignalRequest{Message: &livekitpb.SignalRequest_Subscription{
		Subscription: &livekitpb.UpdateSubscription{TrackSids: []string{"TR_Mp-2", "TR_Cp-2"}},
	}})
	if len(deaf) != 1 || deaf[0] != (wire.Want{Peer: "p-2", Source: wire.SourceMicrophone}) {
		t.Errorf("wants %v", deaf)
	}
}

// TestAMoveMakesTheClientConnectAgain: what it says while it goes, a leave too, does not end its session.
func TestAMoveMakesTheClientConnectAgain(t *testing.T) {
	c := joined(t, &livekitpb.JoinRequest{})
	c.told()
	c.Take()
	c.Write(&wire.Restart{})
	leave := c.told()[0].GetLeave()
	if leave.GetAction() != livekitpb.LeaveRequest_RECONNECT {
		t.Errorf("told %v", leave)
	}
	if err := c.Read(frameOf(t, &livekitpb.SignalRequest{Message: &livekitpb.SignalRequest_Leave{Leave: &livekitpb.LeaveRequest{}}})); err != nil || len(c.Take()) > 0 {
		t.Errorf("the leave is heard, %v", err)
	}
}

func TestAModeratorMutes(t *testing.T) {
	c := joined(t, &livekitpb.JoinRequest{})
	if err := c.Read(frameOf(t, &livekitpb.SignalRequest{Message: &livekitpb.SignalRequest_AddTrack{
		AddTrack: &livekitpb.AddTrackRequest{Cid: "mic", Source: livekitpb.TrackSource_MICROPHONE},
	}})); err != nil {
		t.Fatal(err)
	}
	c.told()
	c.Write(&wire.MutedBy{Source: wire.SourceMicrophone})
	if mute := c.told()[0].GetMute(); mute.GetSid() != "TR_Mp-1" || !mute.GetMuted() {
		t.Errorf("told %v", mute)
	}
}

// TestAClientThatWouldResumeConnectsAgain: what it has negotiated is not known here.
func TestAClientThatWouldResumeConnectsAgain(t *testing.T) {
	request := &livekitpb.JoinRequest{Reconnect: true}
	c := joined(t, request)
	if told := c.told(); len(told) != 1 || told[0].GetLeave().GetAction() != livekitpb.LeaveRequest_RECONNECT {
		t.Errorf("told %v", told)
	}
	if said := c.Take(); len(said) != 1 || wire.TypeOf(said[0]) != wire.TypeOf(&wire.Leave{}) {
		t.Errorf("a peer that nobody continues stays: %v", said)
	}
	c = newClient(t, request)
	c.Translator = New(c.deps, request, &wire.Resume{}, &Self{Room: "lobby", Peer: "p-1"}, "")
	c.Take()
	c.Write(&wire.Resumed{MediaAlive: true})
	if told := c.told(); len(told) != 1 || told[0].GetLeave().GetAction() != livekitpb.LeaveRequest_RECONNECT || len(c.Take()) > 0 {
		t.Errorf("told %v", told)
	}
}

// TestOffersOfAnotherWebSocketHaveOtherIDs: the media node answers an id that it knows from memory.
func TestOffersOfAnotherWebSocketHaveOtherIDs(t *testing.T) {
	request := &livekitpb.JoinRequest{PublisherOffer: &livekitpb.SessionDescription{Sdp: plainOffer, Id: 1}}
	if one, other := heard[*wire.Offer](joined(t, request))[0].ID, heard[*wire.Offer](joined(t, request))[0].ID; one == other {
		t.Errorf("both have the id %s", one)
	}
}

// TestNothingIsAskedForBeforeTheJoinsAnswer: the SDK would lose it, and owe an offer that never comes.
func TestNothingIsAskedForBeforeTheJoinsAnswer(t *testing.T) {
	c := joined(t, &livekitpb.JoinRequest{PublisherOffer: &livekitpb.SessionDescription{Sdp: plainOffer, Id: 1}})
	c.Write(&wire.Answer{ID: heard[*wire.Offer](c)[0].ID, SDP: plainAnswer})
	c.Write(&wire.Slots{Slots: wire.List[wire.Slot]{{Mid: "1", Kind: wire.KindAudio, Peer: "p-2", Source: wire.SourceMicrophone}}})
	if _, asked := answersIn(c.told()); asked > 0 {
		t.Error("an offer is asked for")
	}
	if err := c.Read(frameOf(t, &livekitpb.SignalRequest{Message: &livekitpb.SignalRequest_Trickle{Trickle: &livekitpb.TrickleRequest{}}})); err != nil {
		t.Fatal(err)
	}
	if answers, _ := answersIn(c.told()); len(answers) != 1 || answers[0].GetMidToTrackId()["1"] != "TR_Mp-2" {
		t.Errorf("the join is answered with %v", answers)
	}
}

// TestASlotBeginsOnceItIsTold: Pion drops for good what comes before it knows the media section.
func TestASlotBeginsOnceItIsTold(t *testing.T) {
	c := joined(t, &livekitpb.JoinRequest{PublisherOffer: &livekitpb.SessionDescription{Sdp: plainOffer, Id: 1}})
	offer := heard[*wire.Offer](c)[0]
	if !offer.SlotsWait {
		t.Error("slots do not wait")
	}
	c.Write(&wire.Answer{ID: offer.ID, SDP: plainAnswer})
	c.release()
	c.Write(&wire.Slots{Slots: wire.List[wire.Slot]{{Mid: "1", Kind: wire.KindAudio, Peer: "p-2", Source: wire.SourceMicrophone}}})
	if begun := heard[*wire.Refresh](c); len(begun) > 0 {
		t.Errorf("begun %v before the client was told", begun[0].Mids)
	}
	if err := c.Read(frameOf(t, offerOf(plainOffer))); err != nil {
		t.Fatal(err)
	}
	if begun := heard[*wire.Refresh](c); len(begun) != 1 || len(begun[0].Mids) != 1 || begun[0].Mids[0] != "1" {
		t.Errorf("begun %v", begun)
	}
}

// TestARefusalForTheMomentIsNoEnd: SDKs that connect again give up after a Leave, and try again after a closed WebSocket.
func TestARefusalForTheMomentIsNoEnd(t *testing.T) {
	c := newClient(t, &livekitpb.JoinRequest{})
	c.Write(&wire.Error{Code: wire.CodeStoreUnavailable, Retryable: true})
	if told := c.told(); len(told) > 0 {
		t.Errorf("told %v", told)
	}
	c = newClient(t, &livekitpb.JoinRequest{})
	c.Write(&wire.Error{Code: wire.CodeBadToken})
	if told := c.told(); len(told) != 1 || told[0].GetLeave().GetReason() != livekitpb.DisconnectReason_JOIN_FAILURE {
		t.Errorf("told %v", told)
	}
}
