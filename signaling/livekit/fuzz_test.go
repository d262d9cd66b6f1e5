package livekit

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/signaling/livekit/livekitpb"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

const plainOffer = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0 1 2 3\r\n" +
	"m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=sendrecv\r\na=msid:s mic\r\n" +
	"m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:1\r\na=recvonly\r\n" +
	"m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:2\r\na=recvonly\r\n" +
	"m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:3\r\n"

const plainAnswer = "v=0\r\no=- 7 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 2 1 0\r\n" +
	"m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:2\r\na=sendonly\r\na=msid:slots-0 slot-2\r\na=ssrc:5 cname:c\r\n" +
	"a=candidate:1 1 udp 2130706431 127.0.0.1 7000 typ host\r\na=end-of-candidates\r\n" +
	"m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:1\r\na=sendonly\r\na=msid:slots-0 slot-1\r\na=ssrc:6 cname:c\r\n" +
	"m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=recvonly\r\n"

// client is a joined client with one other in the room.
type client struct {
	*Translator

	frames     []*livekitpb.SignalResponse
	superseded []wire.PeerID
	state      string // of the last token
}

func newClient(t testing.TB, request *livekitpb.JoinRequest) *client {
	t.Helper()
	return newClientWith(t, request, false)
}

func newClientWith(t testing.TB, request *livekitpb.JoinRequest, two bool) *client {
	t.Helper()
	c := &client{}
	c.Translator = New(Deps{
		Send: func(frame []byte) {
			response := &livekitpb.SignalResponse{}
			if err := proto.Unmarshal(frame, response); err != nil {
				t.Fatal(err)
			}
			c.frames = append(c.frames, response)
		},
		Wake: func() {}, Renew: func(resume, state string) string { c.state = state; return "renewed " + resume },
		Supersede: func(peer wire.PeerID) { c.superseded = append(c.superseded, peer) }, Log: slog.New(slog.DiscardHandler),
		TwoConnections: two,
	}, request, &wire.Join{Token: "token"}, nil, "")
	return c
}

func joined(t testing.TB, request *livekitpb.JoinRequest) *client {
	t.Helper()
	c := newClient(t, request)
	c.Take()
	c.Write(joinedMessage())
	return c
}

func joinedMessage() *wire.Joined {
	return &wire.Joined{
		Room: "lobby", Peer: "p-1", Identity: "ann", Name: "Ann", Resume: "resume",
		Permissions: wire.Permissions{Publish: true, Subscribe: true, Chat: true},
		Roster: wire.List[wire.Peer]{
			{Peer: "p-0", Identity: "ann"}, {Peer: "p-1", Identity: "ann", Name: "Ann"}, {Peer: "p-2", Identity: "bob", Name: "Bob"},
		},
	}
}

func frameOf(t testing.TB, request *livekitpb.SignalRequest) []byte {
	t.Helper()
	frame, err := proto.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	return frame
}

func offerOf(sdp string) *livekitpb.SignalRequest {
	return &livekitpb.SignalRequest{Message: &livekitpb.SignalRequest_Offer{Offer: &livekitpb.SessionDescription{Type: "offer", Sdp: sdp, Id: 3}}}
}

// FuzzRead sends a joined client's frames: nothing panics, and what the session hears keeps the limits of the protocol.
func FuzzRead(f *testing.F) {
	for _, request := range []*livekitpb.SignalRequest{
		offerOf(plainOffer), offerOf("v=0\r\nm=audio 9\r\n"), offerOf("m=\r\n"),
		{Message: &livekitpb.SignalRequest_AddTrack{AddTrack: &livekitpb.AddTrackRequest{Cid: "mic", Source: livekitpb.TrackSource_MICROPHONE}}},
		{Message: &livekitpb.SignalRequest_Mute{Mute: &livekitpb.MuteTrackRequest{Sid: "TR_Mp-1", Muted: true}}},
		{Message: &livekitpb.SignalRequest_Subscription{Subscription: &livekitpb.UpdateSubscription{TrackSids: []string{"TR_Mp-2"}}}},
		{Message: &livekitpb.SignalRequest_TrackSetting{TrackSetting: &livekitpb.UpdateTrackSettings{TrackSids: []string{"TR_Cp-2"}, Width: 1 << 31, Height: 9}}},
		{Message: &livekitpb.SignalRequest_UpdateMetadata{UpdateMetadata: &livekitpb.UpdateParticipantMetadata{Name: "x"}}},
		{Message: &livekitpb.SignalRequest_Leave{Leave: &livekitpb.LeaveRequest{}}},
		{Message: &livekitpb.SignalRequest_PingReq{PingReq: &livekitpb.Ping{Timestamp: 1}}},
		{Message: &livekitpb.SignalRequest_Answer{Answer: &livekitpb.SessionDescription{Type: "answer", Sdp: plainAnswer}}},
		{},
	} {
		f.Add(frameOf(f, request), plainAnswer, false)
		f.Add(frameOf(f, request), plainAnswer, true)
	}
	f.Fuzz(func(t *testing.T, frame []byte, answer string, two bool) {
		c := newClientWith(t, &livekitpb.JoinRequest{}, two)
		c.Take()
		c.Write(joinedMessage())
		for _, m := range c.Take() {
			if offer, ok := m.(*wire.Offer); ok {
				c.Write(&wire.Answer{ID: offer.ID, SDP: answer})
			}
		}
		for range 2 {
			if err := c.Read(frame); err != nil && !errors.Is(err, wire.ErrMalformed) && !errors.Is(err, errSDP) {
				t.Fatalf("%v is no error of the protocol", err)
			}
			for _, m := range c.Take() {
				if offer, ok := m.(*wire.Offer); ok {
					c.Write(&wire.Answer{ID: offer.ID, SDP: answer})
				}
				encoded, err := wire.Encode(m)
				if err != nil {
					t.Fatal(err)
				}
				if view, ok := m.(*wire.View); ok && len(view.Wants) > wire.MaxWants {
					t.Fatalf("a view of %d bytes", len(encoded))
				}
			}
		}
	})
}

func packed(t testing.TB, plain []byte) string {
	t.Helper()
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	_, _ = w.Write(plain)
	_ = w.Close()
	wrapped, err := proto.Marshal(&livekitpb.WrappedJoinRequest{Compression: livekitpb.WrappedJoinRequest_GZIP, JoinRequest: zipped.Bytes()})
	if err != nil {
		t.Fatal(err)
	}
	return base64.URLEncoding.EncodeToString(wrapped)
}

func FuzzReadRequest(f *testing.F) {
	f.Add(packed(f, frameOf(f, offerOf(plainOffer))))
	f.Add("")
	f.Add("====")
	f.Fuzz(func(t *testing.T, text string) {
		request, err := ReadRequest(text)
		if (request == nil) == (err == nil) {
			t.Fatalf("%v and %v", request, err)
		}
		if proto.Size(request) > 4*MaxRequestBytes {
			t.Fatalf("a request of %d bytes", proto.Size(request))
		}
	})
}

func TestARequestThatGrowsIsRefused(t *testing.T) {
	bomb := packed(t, bytes.Repeat([]byte{0}, 64<<20))
	if _, err := ReadRequest(bomb); err == nil || !strings.Contains(err.Error(), "once decompressed") {
		t.Errorf("a bomb: %v", err)
	}
	request := &livekitpb.JoinRequest{PublisherOffer: &livekitpb.SessionDescription{Sdp: plainOffer}}
	plain, err := proto.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	if read, err := ReadRequest(packed(t, plain)); err != nil || !proto.Equal(read, request) {
		t.Errorf("read %v, %v", read, err)
	}
	if _, err := ReadRequest(""); !errors.Is(err, errRequest) {
		t.Errorf("without a request: %v", err)
	}
}
