package signaling

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/fstest"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/people/presence"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/replica"
	"github.com/holdfast-rtc/holdfast/signaling/translate"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// loneServer is a signaling node that only routes, and a token for its whole REST API.
func loneServer(f testing.TB) (s *Server, token string) {
	f.Helper()
	keys, err := access.ParseKeyring(apiKey + ":" + apiSecret)
	if err != nil {
		f.Fatal(err)
	}
	key, err := control.ParseClusterKey(clusterKey)
	if err != nil {
		f.Fatal(err)
	}
	pool := control.NewPool(key, control.DefaultConfig())
	f.Cleanup(pool.Close)
	placer := &fakePlacer{pins: map[ring.RoomID]pin.Pin{}, notes: map[string]string{}}
	config := DefaultConfig("signaling-1")
	config.Dev = true
	s, err = New(config, Parts{
		Placer: placer, Pool: pool, Views: newFakeViews(), Store: placer, Keys: keys, Static: fstest.MapFS{"index.html": {Data: []byte("<!doctype html>hello")}},
		Presence: presence.New(quickly(), nobody{}, nobody{}, panics.New(), slog.New(slog.DiscardHandler)), Users: nobody{}, Rosters: &fakeRosters{}, Doors: doorless{},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	token, err = keys.Mint(apiKey, access.Operator("ops"), generous)
	if err != nil {
		f.Fatal(err)
	}
	return s, token
}

// FuzzRequest: whatever is asked of the REST API, with a good token and without one, is answered with a status and, under /api, JSON or a sentence.
func FuzzRequest(f *testing.F) {
	for _, target := range []string{
		"/", "/ws", "/healthz", "/readyz", "/api/v1/config", "/api/v1/dev/token?room=lobby&name=Ada", "/api/v1/nodes", "/api/v1/rooms?media",
		"/api/v1/rooms/a%2fb", "/api/v1/rooms/%00", "/api/v1/process?node=sfu-1&collect", "/api/v1/peers?room=lobby&peer=p-1", "/api/v1/peers?room=lobby&identity=%ff",
		"/api/v1/peers/mute?room=lobby&source=nose", "/api/v1/peers/%2f?room=lobby",
		"/api/v1/presence?user=ada&user=%00", "/api/v1/presence?page=18446744073709551615", "/api/v1/presence?page=-1",
		"/api/v1/door?room=lobby", "/api/v1/waiting?room=lobby&identity=ada",
	} {
		f.Add(http.MethodGet, target, true)
	}
	f.Add(http.MethodDelete, "/api/v1/peers?room=lobby&peer=p-1", true)
	f.Add(http.MethodPost, "/api/v1/peers/mute?room=lobby&identity=ada&source=camera", true)
	s, token := loneServer(f)
	handler := s.handler()
	f.Fuzz(func(t *testing.T, method, target string, authorized bool) {
		u, err := url.ParseRequestURI(target)
		if err != nil || strings.Contains(target, "collect") || !strings.HasPrefix(target, "/") {
			return
		}
		request := (&http.Request{
			Method: method, URL: u, Host: "localhost", RequestURI: target, Header: http.Header{}, Body: http.NoBody, RemoteAddr: "192.0.2.1:1",
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		}).WithContext(t.Context())
		if authorized {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, request)
		if n := s.panics.Count(); n > 0 {
			t.Fatalf("%s %q panics", method, target)
		}
		if answer.Code == http.StatusInternalServerError || answer.Code < 200 {
			t.Fatalf("%s %q is answered with %d", method, target, answer.Code)
		}
		if answer.Header().Get("Content-Type") == "application/json" && method != http.MethodHead && !json.Valid(answer.Body.Bytes()) {
			t.Fatalf("%s %q is answered with %q, which is not JSON", method, target, answer.Body)
		}
	})
}

// FuzzEvents: whatever a media node says to a session, it neither panics nor tells the client what is no message.
func FuzzEvents(f *testing.F) {
	for _, event := range []*control.PeerEvent{
		{Event: &control.PeerEvent_Attached{Attached: &control.Attached{Roster: []*control.Peer{{Id: "p-2"}, nil}, Slots: []*control.Slot{{Mid: "0"}, nil}, Egress: &control.Egress{BitsPerSecond: 1 << 63}}}},
		{Event: &control.PeerEvent_Answer{Answer: &control.Answer{OfferId: "1", Sdp: "v=0"}}},
		{Event: &control.PeerEvent_OfferRejected{OfferRejected: &control.OfferRejected{OfferId: "1", NodeFault: true}}},
		{Event: &control.PeerEvent_Slots{Slots: &control.SlotTable{Slots: []*control.Slot{{Mid: "0", Source: 99}, nil}, Lacks: []*control.Lack{{Codec: "a\nb", Source: 99}, nil}}}},
		{Event: &control.PeerEvent_Roster{Roster: &control.Roster{Peers: []*control.Peer{{Id: "p-2"}, nil}}}},
		{Event: &control.PeerEvent_RosterChange{RosterChange: &control.RosterChange{Change: &control.RosterChange_Joined{Joined: &control.Peer{Id: "p-3"}}}}},
		{Event: &control.PeerEvent_RosterChange{RosterChange: &control.RosterChange{Change: &control.RosterChange_Left{Left: "p-3"}}}},
		{Event: &control.PeerEvent_Speakers{Speakers: &control.Speakers{Speakers: []*control.Speaker{{Peer: "p-2", Level: 0.5}, nil}}}},
		{Event: &control.PeerEvent_Chat{Chat: &control.Chat{Peer: "p-2", Text: "hello", AtUnixMs: -1}}},
		{Event: &control.PeerEvent_Silenced{Silenced: &control.Silenced{Source: 99, By: "a\nb"}}},
		{Event: &control.PeerEvent_Silenced{Silenced: &control.Silenced{Source: control.Source_SOURCE_CAMERA}}},
		{Event: &control.PeerEvent_UnmuteAsked{UnmuteAsked: &control.UnmuteAsked{Source: 1, By: "Ada"}}},
		{Event: &control.PeerEvent_Reactions{Reactions: &control.Reactions{Reactions: []*control.Reaction{{Peer: "p-2", Emoji: "x"}, nil}}}},
		{Event: &control.PeerEvent_RosterChange{RosterChange: &control.RosterChange{Change: &control.RosterChange_Updated{Updated: &control.Peer{Id: "p-1", Moderator: true, Silenced: 1 << 31, HandRaisedUnixMs: -1}}}}},
		{Event: &control.PeerEvent_Reoffer{Reoffer: &control.Reoffer{Mids: []string{"0", ""}, Reason: "silent"}}},
		{Event: &control.PeerEvent_Egress{Egress: &control.Egress{PacketsPerSecond: 1 << 63}}},
		{Event: &control.PeerEvent_Fenced{Fenced: &control.Fenced{Current: &control.Fence{Epoch: 1 << 63}}}},
		{Event: &control.PeerEvent_Refused{Refused: &control.Refused{Code: 1}}},
	} {
		text, err := proto.Marshal(event)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, text)
	}
	s, _ := loneServer(f)
	f.Fuzz(func(t *testing.T, one, two []byte) {
		ended := false
		// Nobody writes out what it is told.
		k := &socket{log: s.log, writing: true, end: func(error) { ended = true }}
		told := &session{
			server: s, socket: k, log: s.log, who: access.Session{Room: "lobby", Peer: "p-1", Identity: "ada"},
			pin: pin.Pin{Fence: pin.Fence{Epoch: 1}, Node: "sfu-1"}, drop: func() {}, line: &line{}, seat: seat{socket: k, moves: make(chan pin.Pin, 1), died: make(chan pin.BootID, 1)}, unjudge: func() {},
		}
		for _, text := range [][]byte{one, two} {
			var event control.PeerEvent
			if proto.Unmarshal(text, &event) != nil {
				return
			}
			if attached := event.GetAttached(); attached != nil {
				told.setRoster(replica.Of(attached.GetRoster()))
				told.setEgress(attached.GetEgress())
				told.known.slots = attached.GetSlots()
				k.send(&wire.Roster{Roster: translate.Roster(attached.GetRoster()), Epoch: 1})
				_ = told.opening(told.pin)
			}
			told.tell(t.Context(), &event)
		}
		told.workers.Wait()
		if ended {
			t.Fatal("two events end the session")
		}
		for _, frame := range k.out {
			if _, err := wire.DecodeServer(frame); err != nil {
				t.Fatalf("the client is told %s: %v", frame, err)
			}
		}
	})
}
