package livekit

import (
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-rtc/holdfast/signaling/livekit/livekitpb"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// withTwo is a joined client with a connection for each direction, and bob in the room.
func withTwo(t testing.TB) *client {
	t.Helper()
	c := newClientWith(t, &livekitpb.JoinRequest{}, true)
	c.Take()
	c.Write(joinedMessage())
	return c
}

// answerAsNode answers an offer of the downlink as a media node does.
func (c *client) answerAsNode(t *testing.T, o *wire.Offer) {
	t.Helper()
	offer, err := parse(o.SDP)
	if err != nil {
		t.Fatal(err)
	}
	answer := "v=0\r\no=- 7 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0\r\na=ice-ufrag:node\r\na=ice-pwd:of the node\r\na=fingerprint:sha-256 AA\r\n"
	for _, s := range offer.sections {
		direction := map[string]string{"recvonly": "sendonly\r\na=msid:slots-0 slot-" + s.mid, "inactive": "inactive"}[s.direction]
		answer += s.lines[0] + "\r\na=setup:active\r\na=mid:" + s.mid + "\r\na=" + direction + "\r\n"
	}
	c.Write(&wire.Answer{ID: o.ID, SDP: answer})
}

// offered returns the one offer that the client was sent since the last call.
func (c *client) wasOffered(t *testing.T) *livekitpb.SessionDescription {
	t.Helper()
	var offers []*livekitpb.SessionDescription
	for _, frame := range c.told() {
		if offer := frame.GetOffer(); offer != nil {
			offers = append(offers, offer)
		}
	}
	if len(offers) != 1 {
		t.Fatalf("%d offers", len(offers))
	}
	return offers[0]
}

func (c *client) answers(t *testing.T) {
	t.Helper()
	answer := "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=ice-ufrag:theirs\r\na=ice-pwd:their password\r\na=fingerprint:sha-256 BB\r\na=mid:0\r\n"
	if err := c.Read(frameOf(t, &livekitpb.SignalRequest{Message: &livekitpb.SignalRequest_Answer{Answer: &livekitpb.SessionDescription{Type: "answer", Sdp: answer}}})); err != nil {
		t.Fatal(err)
	}
}

func theOffer(t *testing.T, c *client) *wire.Offer {
	t.Helper()
	offers := heard[*wire.Offer](c)
	if len(offers) != 1 {
		t.Fatalf("%d offers", len(offers))
	}
	return offers[0]
}

// TestADownlinkIsNegotiated: the client is offered the media node's ICE and DTLS, which then gets the client's.
func TestADownlinkIsNegotiated(t *testing.T) {
	c := withTwo(t)
	if join := c.told()[0].GetJoin(); !join.GetSubscriberPrimary() {
		t.Errorf("answered %v", join)
	}
	unmet := theOffer(t, c)
	if unmet.Part != wire.PartDownlinkUnmet || !unmet.Fresh {
		t.Fatalf("asked %+v", unmet)
	}
	c.answerAsNode(t, unmet)
	if sdp := c.wasOffered(t).GetSdp(); !strings.Contains(sdp, "a=ice-ufrag:node\r\n") || !strings.Contains(sdp, "a=ice-lite\r\n") || strings.Count(sdp, "m=") != 1 {
		t.Errorf("offered\n%s", sdp)
	}
	c.answers(t)
	met := theOffer(t, c)
	if met.Part != wire.PartDownlink || met.Fresh || !strings.Contains(met.SDP, "a=ice-ufrag:theirs\r\n") || strings.Contains(met.SDP, "unmet") {
		t.Errorf("asked %+v", met)
	}
	// Bob's microphone and camera are on, until he says otherwise.
	if kinds := regexp.MustCompile(`m=\w+ 9`).FindAllString(met.SDP, -1); len(kinds) != 3 {
		t.Errorf("asked for %v", kinds)
	}
}

// TestASectionShowsOneStream: another stream gets another section, which takes the place of the first once both sides know its end.
func TestASectionShowsOneStream(t *testing.T) {
	c := withTwo(t)
	c.answerAsNode(t, theOffer(t, c))
	c.answers(t)
	c.answerAsNode(t, theOffer(t, c))
	c.told()
	mid := func(sdp, kind string) string {
		for _, section := range strings.Split(sdp, "m=")[2:] {
			if strings.HasPrefix(section, kind+" 9") {
				return regexp.MustCompile(`a=mid:(\d+)`).FindStringSubmatch(section)[1]
			}
		}
		return ""
	}
	video := ""
	for _, p := range c.downlink.asked {
		if !p.audio {
			video = p.mid
		}
	}
	show := func(mid string, source wire.Source) {
		c.Write(&wire.Slots{Slots: wire.List[wire.Slot]{{Mid: mid, Kind: wire.KindVideo, Peer: "p-2", Source: source}}})
	}
	show(video, wire.SourceCamera)
	offer := c.wasOffered(t)
	if offer.GetMidToTrackId()[video] != "TR_Cp-2" || !strings.Contains(offer.GetSdp(), "a=msid:PA_p-2|TR_Cp-2 TR_Cp-2\r\n") {
		t.Fatalf("offered %v", offer)
	}
	if len(heard[*wire.Refresh](c)) != 0 {
		t.Error("the slot begins before the client knows it")
	}
	c.answers(t)
	if begun := heard[*wire.Refresh](c); len(begun) != 1 || begun[0].Mids[0] != video {
		t.Errorf("begun %v", begun)
	}

	show(video, wire.SourceScreen)
	ended := theOffer(t, c)
	if !strings.Contains(ended.SDP, "m=video 0 ") || mid(ended.SDP, "video") == video {
		t.Fatalf("asked\n%s", ended.SDP)
	}
	next := mid(ended.SDP, "video")
	c.answerAsNode(t, ended)
	if sdp := c.wasOffered(t).GetSdp(); !strings.Contains(sdp, "m=video 0 ") {
		t.Fatalf("offered\n%s", sdp)
	}
	c.answers(t)
	c.Take()
	show(next, wire.SourceScreen)
	offer = c.wasOffered(t)
	if sdp := offer.GetSdp(); offer.GetMidToTrackId()[next] != "TR_Sp-2" || strings.Count(sdp, "m=") != 2 {
		t.Errorf("offered\n%s", sdp)
	}
}

// TestOneOfferIsUnderWay: the session repeats only the latest one to a node that it loses and finds again.
func TestOneOfferIsUnderWay(t *testing.T) {
	c := withTwo(t)
	if err := c.Read(frameOf(t, offerOf(plainOffer))); err != nil {
		t.Fatal(err)
	}
	first := theOffer(t, c)
	c.answerAsNode(t, first)
	if uplink := theOffer(t, c); uplink.Part != wire.PartUplink {
		t.Errorf("after the downlink's offer comes %+v", uplink)
	}
}

// TestANodesNewConnectionNeedsOneOfTheClient: Pion takes no new certificate.
func TestANodesNewConnectionNeedsOneOfTheClient(t *testing.T) {
	c := withTwo(t)
	c.answerAsNode(t, theOffer(t, c))
	c.answers(t)
	c.told()
	met := theOffer(t, c)
	c.Write(&wire.Answer{ID: met.ID, SDP: "v=0\r\na=ice-ufrag:other\r\na=ice-pwd:of the node\r\na=fingerprint:sha-256 AA\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\n"})
	if leave := c.told()[0].GetLeave(); leave.GetAction() != livekitpb.LeaveRequest_RECONNECT {
		t.Errorf("told %v", leave)
	}
}
