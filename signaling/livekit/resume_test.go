package livekit

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-rtc/holdfast/signaling/livekit/livekitpb"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const chromium = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36"

// cameraOffer sends a camera in layers on the media section that comes after those of the first offer.
const cameraOffer = plainOffer + "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:4\r\na=sendonly\r\na=msid:s cam\r\n"

const cameraAnswer = plainAnswer + "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:4\r\na=recvonly\r\n"

// publishing is a client of livekit-client that sends a camera in layers and sees bob's.
func publishing(t testing.TB, userAgent string) *client {
	t.Helper()
	request := &livekitpb.JoinRequest{ClientInfo: &livekitpb.ClientInfo{Sdk: livekitpb.ClientInfo_JS}, PublisherOffer: &livekitpb.SessionDescription{Sdp: plainOffer, Id: 1}}
	c := newClient(t, request)
	c.deps.UserAgent = userAgent
	c.Translator = New(c.deps, request, &wire.Join{}, nil, "")
	c.Write(joinedMessage())
	c.Write(&wire.Answer{ID: heard[*wire.Offer](c)[0].ID, SDP: plainAnswer})
	c.release()
	c.read(t, &livekitpb.SignalRequest{Message: &livekitpb.SignalRequest_AddTrack{AddTrack: &livekitpb.AddTrackRequest{
		Cid: "cam", Type: livekitpb.TrackType_VIDEO, Source: livekitpb.TrackSource_CAMERA, Layers: []*livekitpb.VideoLayer{{}, {}},
	}}})
	c.read(t, offerOf(cameraOffer))
	offers := heard[*wire.Offer](c)
	offer := offers[len(offers)-1]
	if offer.ReportSenders != (userAgent == chromium) {
		t.Errorf("the node reports senders: %t", offer.ReportSenders)
	}
	c.Write(&wire.Answer{ID: offer.ID, SDP: cameraAnswer})
	c.Write(&wire.Slots{Slots: wire.List[wire.Slot]{{Mid: "2", Kind: wire.KindVideo, Peer: "p-2", Source: wire.SourceCamera}}})
	c.read(t, offerOf(cameraOffer))
	return c
}

func (c *client) read(t testing.TB, request *livekitpb.SignalRequest) {
	t.Helper()
	if err := c.Read(frameOf(t, request)); err != nil {
		t.Fatal(err)
	}
}

// lastAction tells the client to go, and returns how.
func (c *client) lastAction() livekitpb.LeaveRequest_Action {
	frames := c.told()
	return frames[len(frames)-1].GetLeave().GetAction()
}

func cameraSenders() wire.List[wire.Sender] {
	return wire.List[wire.Sender]{{Mid: "4", Source: wire.SourceCamera, Rid: "q", SSRC: 11, RTXSSRC: 12}, {Mid: "4", Source: wire.SourceCamera, Rid: "h", SSRC: 21, RTXSSRC: 22}}
}

// again opens the next WebSocket of a client.
func (c *client) again(t testing.TB, resumed *wire.Resumed) *client {
	t.Helper()
	state := c.state
	request := &livekitpb.JoinRequest{ClientInfo: &livekitpb.ClientInfo{Sdk: livekitpb.ClientInfo_JS}, Reconnect: true}
	next := newClient(t, request)
	next.deps.UserAgent = chromium
	next.Translator = New(next.deps, request, &wire.Resume{}, &Self{Room: "lobby", Peer: "p-1", Identity: "ann", Permissions: wire.Permissions{Publish: true, Subscribe: true}}, state)
	next.Take()
	next.Write(resumed)
	return next
}

func syncOf(answer string) *livekitpb.SignalRequest {
	return &livekitpb.SignalRequest{Message: &livekitpb.SignalRequest_SyncState{SyncState: &livekitpb.SyncState{
		Answer:        &livekitpb.SessionDescription{Type: "answer", Sdp: answer},
		PublishTracks: []*livekitpb.TrackPublishedResponse{{Cid: "another cam", Track: &livekitpb.TrackInfo{Sid: "TR_Cp-1", Simulcast: true}}},
		DataChannels:  []*livekitpb.DataChannelInfo{{Label: "_lossy", Id: 1}, {Label: "_reliable", Id: 3}},
	}}}
}

func shownIn(c *client) string {
	answers, _ := answersIn(c.told())
	return answers[len(answers)-1].GetSdp()
}

// TestAClientResumesWithItsConnection at a node that knows nothing of it, and at the one that it has.
func TestAClientResumesWithItsConnection(t *testing.T) {
	for _, alive := range []bool{false, true} {
		c := publishing(t, chromium)
		c.Sends(cameraSenders())
		shown := shownIn(c)
		order := slices.Clone(c.lines.order)
		c.Write(&wire.Restart{})
		if how := c.lastAction(); how != livekitpb.LeaveRequest_RESUME {
			t.Fatalf("told to %v", how)
		}
		seen := wire.Slot{Mid: "2", Kind: wire.KindVideo, Peer: "p-2", Source: wire.SourceCamera}
		resumed := &wire.Resumed{MediaAlive: alive, Resume: "resume", Placement: wire.Placement{Data: false}, Roster: wire.List[wire.Peer]{{Peer: "p-1", Identity: "ann"}, {Peer: "p-2", Identity: "bob"}}}
		if alive {
			resumed.Slots = wire.List[wire.Slot]{seen}
		}
		c = c.again(t, resumed)
		if frames := c.told(); frames[0].GetReconnect() == nil {
			t.Fatalf("told %v", frames[0])
		}
		c.read(t, syncOf(shown))
		c.read(t, offerOf(cameraOffer))
		offer := heard[*wire.Offer](c)[0]
		if offer.Fresh == alive || !slices.Equal(c.lines.order, order) || offer.DataReliable != 3 || offer.DataLossy != 1 {
			t.Errorf("alive %t: offered %+v in the order %v, want %v", alive, offer, c.lines.order, order)
		}
		named := slices.Contains(offer.Senders, cameraSenders()[1])
		if table := slices.Contains(offer.Slots, seen); table == alive || named == alive {
			t.Errorf("alive %t: the node hears of slots %v and senders %v", alive, offer.Slots, offer.Senders)
		}
		c.Write(&wire.Answer{ID: offer.ID, SDP: cameraAnswer})
		if now := shownIn(c); !strings.Contains(now, "a=msid:PA_p-2|TR_Cp-2 TR_Cp-2") {
			t.Errorf("alive %t: the client gets\n%s", alive, now)
		}
		if begun := heard[*wire.Refresh](c); len(begun) != 1 || !slices.Equal(begun[0].Mids, []string{"2"}) {
			t.Errorf("alive %t: begun %v", alive, begun)
		}
	}
}

// TestWhoLeftMeanwhileIsTold: a client that resumes keeps whom it knows.
func TestWhoLeftMeanwhileIsTold(t *testing.T) {
	c := publishing(t, chromium)
	c.Sends(cameraSenders())
	c.Write(&wire.Restart{})
	c = c.again(t, &wire.Resumed{Roster: wire.List[wire.Peer]{{Peer: "p-1", Identity: "ann"}}})
	for _, frame := range c.told() {
		for _, info := range frame.GetUpdate().GetParticipants() {
			if info.GetSid() == "PA_p-2" && info.GetState() == livekitpb.ParticipantInfo_DISCONNECTED {
				return
			}
		}
	}
	t.Error("that bob left is not told")
}

// TestWhoCannotResumeConnectsAgain: the node does not know the layers' SSRCs yet, or the browser cannot go on with its connection.
func TestWhoCannotResumeConnectsAgain(t *testing.T) {
	c := publishing(t, chromium)
	c.Write(&wire.Restart{})
	if how := c.lastAction(); how != livekitpb.LeaveRequest_RECONNECT {
		t.Errorf("without SSRCs: told to %v", how)
	}
	c = publishing(t, "Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0")
	c.Sends(cameraSenders())
	c.Write(&wire.Restart{})
	if how := c.lastAction(); how != livekitpb.LeaveRequest_RECONNECT {
		t.Errorf("Firefox: told to %v", how)
	}
}

// TestAnUnansweredOfferGoesToTheNextNode: the client is not told of the first.
func TestAnUnansweredOfferGoesToTheNextNode(t *testing.T) {
	c := joined(t, &livekitpb.JoinRequest{PublisherOffer: &livekitpb.SessionDescription{Sdp: plainOffer, Id: 1}})
	first := heard[*wire.Offer](c)[0]
	c.told()
	c.Write(&wire.Restart{})
	if again := heard[*wire.Offer](c); len(again) != 1 || again[0].SDP != first.SDP || again[0].ID == first.ID || len(c.told()) > 0 {
		t.Errorf("the next node gets %v", again)
	}
}

// TestATokenIsRenewedOnceAMoment, however much changes.
func TestATokenIsRenewedOnceAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := publishing(t, chromium)
		time.Sleep(keepAfter) //nolint:forbidigo // the bubble's clock
		synctest.Wait()
		c.told()
		for range 10 {
			c.Sends(cameraSenders())
		}
		time.Sleep(keepAfter) //nolint:forbidigo // the bubble's clock
		synctest.Wait()
		if frames := c.told(); len(frames) != 1 || frames[0].GetRefreshToken() == "" || !strings.Contains(c.state, `"ssrc":21`) {
			t.Errorf("told %v with the state %s", frames, c.state)
		}
	})
}
