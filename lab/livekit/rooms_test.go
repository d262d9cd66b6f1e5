package livekit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/livekit/protocol/auth"
	"github.com/livekit/protocol/livekit"
	lksdk "github.com/livekit/server-sdk-go/v2"
	"github.com/twitchtv/twirp"
)

const (
	patience = 60 * time.Second
	roomsKey = "app"
)

var roomsSecret = strings.Repeat("s", 32)

// servers are a store, two signaling nodes and two media nodes, each a process of the unmodified binary.
type servers struct {
	pages []string // of the signaling nodes
	media []*exec.Cmd
}

func newServers(t *testing.T) *servers {
	t.Helper()
	binary := build(t)
	store, gossip := loopback(t), loopback(t)
	s := &servers{pages: []string{loopback(t), loopback(t)}}
	env := []string{
		"HOLDFAST_CLUSTER_KEY=" + strings.Repeat("k", 32), "HOLDFAST_API_KEYS=" + roomsKey + ":" + roomsSecret, "HOLDFAST_STORE=redis://" + store, "HOLDFAST_JOIN=" + gossip,
	}
	run(t, binary, nil, "store", "--listen", store)
	run(t, binary, env, "signaling", "--name", "signaling-0", "--listen", s.pages[0], "--control-listen", "127.0.0.1:0", "--gossip-listen", gossip, "--solo")
	holds(t, "the first signaling node answers", func() bool {
		conn, err := net.Dial("tcp", s.pages[0])
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	run(t, binary, env, "signaling", "--name", "signaling-1", "--listen", s.pages[1], "--control-listen", "127.0.0.1:0", "--gossip-listen", "127.0.0.1:0")
	for _, name := range []string{"sfu-0", "sfu-1"} {
		s.media = append(s.media, run(t, binary, env, "sfu", "--name", name, "--grace", "5s", "--control-listen", "127.0.0.1:0", "--media-listen", "127.0.0.1:0", "--gossip-listen", "127.0.0.1:0"))
	}
	for _, page := range s.pages {
		holds(t, page+" knows both media nodes", func() bool {
			token, err := auth.NewAccessToken(roomsKey, roomsSecret).SetVideoGrant(&auth.VideoGrant{RoomList: true}).ToJWT()
			if err != nil {
				t.Fatal(err)
			}
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+page+"/api/v1/nodes", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer "+token)
			answer, err := http.DefaultClient.Do(request)
			if err != nil {
				return false
			}
			defer answer.Body.Close()
			var said bytes.Buffer
			_, _ = said.ReadFrom(answer.Body)
			return strings.Contains(said.String(), "sfu-0") && strings.Contains(said.String(), "sfu-1")
		})
	}
	return s
}

func (s *servers) client(node int) *lksdk.RoomServiceClient {
	return lksdk.NewRoomServiceClient("http://"+s.pages[node], roomsKey, roomsSecret)
}

// member is a client of Holdfast's own protocol, which needs no media to be in a room.
type member struct {
	t     *testing.T
	conn  *websocket.Conn
	heard []map[string]any
}

func (s *servers) join(t *testing.T, node int, room, identity string) *member {
	t.Helper()
	token, err := auth.NewAccessToken(roomsKey, roomsSecret).SetIdentity(identity).SetName(strings.ToUpper(identity)).SetVideoGrant(&auth.VideoGrant{RoomJoin: true, Room: room}).ToJWT()
	if err != nil {
		t.Fatal(err)
	}
	dialer := websocket.Dialer{Subprotocols: []string{"holdfast.v1"}, HandshakeTimeout: patience}
	conn, answer, err := dialer.Dial("ws://"+s.pages[node]+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	t.Cleanup(func() { _ = conn.Close() })
	m := &member{t: t, conn: conn}
	if err := conn.WriteJSON(map[string]any{"type": "join", "token": token}); err != nil {
		t.Fatal(err)
	}
	return m
}

// enters joins again while the client is told to: the store of a young cluster may not know yet that nobody is in the room.
func (s *servers) enters(t *testing.T, node int, room, identity string) (m *member, joined map[string]any) {
	t.Helper()
	holds(t, identity+" enters "+room, func() bool {
		m = s.join(t, node, room, identity)
		joined = m.hears("an answer", func(said map[string]any) bool { return said["type"] == "joined" || said["type"] == "error" })
		if joined["type"] == "error" && joined["retryable"] != true {
			t.Fatalf("%s is told %v", identity, joined)
		}
		return joined["type"] == "joined"
	})
	return m, joined
}

// hears reads until a message passes.
func (m *member) hears(what string, passes func(map[string]any) bool) map[string]any {
	m.t.Helper()
	for _, said := range m.heard {
		if passes(said) {
			return said
		}
	}
	_ = m.conn.SetReadDeadline(time.Now().Add(patience))
	for {
		_, text, err := m.conn.ReadMessage()
		if err != nil {
			m.t.Fatalf("%s is not heard: %v; heard: %v", what, err, m.heard)
		}
		said := map[string]any{}
		if err := json.Unmarshal(text, &said); err != nil {
			m.t.Fatal(err)
		}
		m.heard = append(m.heard, said)
		if passes(said) {
			return said
		}
	}
}

func (m *member) hearsType(name string) map[string]any {
	m.t.Helper()
	return m.hears(name, func(said map[string]any) bool { return said["type"] == name })
}

func run(t *testing.T, binary string, env []string, args ...string) *exec.Cmd {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.Command(binary, args...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%v:\n%s", args, said.String())
		}
	})
	return cmd
}

// loopback is an address of this machine that no other process is likely to take in between.
func loopback(t *testing.T) string {
	t.Helper()
	lis, err := net.Listen("tcp", fmt.Sprintf("127.%d.%d.%d:0", 1+rand.IntN(250), 1+rand.IntN(250), 1+rand.IntN(250)))
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	return lis.Addr().String()
}

func holds(t *testing.T, what string, is func() bool) {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(patience); !is(); <-look.C {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// refused fails the test unless LiveKit's library reads an error of this code.
func refused(t *testing.T, what string, err error, code twirp.ErrorCode) {
	t.Helper()
	var told twirp.Error
	if !errors.As(err, &told) || told.Code() != code {
		t.Errorf("%s is answered %v, want %s", what, err, code)
	}
}

// TestRoomServiceOfAnUnmodifiedSDK has an application make, look into, change, run and end a room. The room keeps its cap and its metadata while nobody is in it, at every signaling node, and those who come are told.
func TestRoomServiceOfAnUnmodifiedSDK(t *testing.T) {
	s := newServers(t)
	ctx := t.Context()
	one, other := s.client(0), s.client(1)

	made, err := one.CreateRoom(ctx, &livekit.CreateRoomRequest{Name: "hall", MaxParticipants: 2, EmptyTimeout: 600, Metadata: "lesson 1"})
	if err != nil {
		t.Fatal(err)
	}
	if made.GetName() != "hall" || made.GetMaxParticipants() != 2 || made.GetEmptyTimeout() != 600 || made.GetMetadata() != "lesson 1" || !strings.HasPrefix(made.GetSid(), "RM_") || made.GetCreationTime() == 0 {
		t.Errorf("the room is made as %v", made)
	}
	listed, err := other.ListRooms(ctx, &livekit.ListRoomsRequest{Names: []string{"hall", "nothing"}})
	if err != nil || len(listed.GetRooms()) != 1 || listed.GetRooms()[0].GetMetadata() != "lesson 1" || listed.GetRooms()[0].GetSid() != made.GetSid() || listed.GetRooms()[0].GetMaxParticipants() != 2 {
		t.Errorf("the other signaling node lists %v, %v", listed, err)
	}

	ada, joined := s.enters(t, 0, "hall", "ada")
	if joined["roomMetadata"] != "lesson 1" {
		t.Errorf("the first to join is told the metadata %v", joined["roomMetadata"])
	}
	bob, joined := s.enters(t, 1, "hall", "bob")
	if joined["roomMetadata"] != "lesson 1" {
		t.Errorf("the second to join is told the metadata %v", joined["roomMetadata"])
	}
	if full := s.join(t, 1, "hall", "cy").hearsType("error"); full["code"] != "room_full" {
		t.Errorf("a third of two is told %v", full)
	}

	updated, err := other.UpdateRoomMetadata(ctx, &livekit.UpdateRoomMetadataRequest{Room: "hall", Metadata: "lesson 2"})
	if err != nil || updated.GetMetadata() != "lesson 2" || updated.GetNumParticipants() != 2 || updated.GetMaxParticipants() != 2 {
		t.Errorf("the room is updated as %v, %v", updated, err)
	}
	for _, m := range []*member{ada, bob} {
		if told := m.hearsType("room-updated"); told["metadata"] != "lesson 2" {
			t.Errorf("everybody is told %v", told)
		}
	}
	participants(t, s, ada, bob)
	moderation(t, s, ada, bob)

	if _, err := one.DeleteRoom(ctx, &livekit.DeleteRoomRequest{Room: "hall"}); err != nil {
		t.Fatal(err)
	}
	if ended := ada.hearsType("bye"); ended["code"] != "call_ended" {
		t.Errorf("the end is told as %v", ended)
	}
	if listed, err := other.ListRooms(ctx, &livekit.ListRoomsRequest{}); err != nil || len(listed.GetRooms()) != 0 {
		t.Errorf("after its end there are %v, %v", listed, err)
	}
	if made, err := one.CreateRoom(ctx, &livekit.CreateRoomRequest{Name: "short", EmptyTimeout: 1}); err != nil || made.GetEmptyTimeout() != 1 {
		t.Errorf("a room for a second is made as %v, %v", made, err)
	}
	holds(t, "nobody has come, so the room is no longer there", func() bool {
		listed, err := other.ListRooms(ctx, &livekit.ListRoomsRequest{})
		return err == nil && len(listed.GetRooms()) == 0
	})
	_, err = one.DeleteRoom(ctx, &livekit.DeleteRoomRequest{Room: "hall"})
	refused(t, "the end of a room that is none", err, twirp.NotFound)
	if _, joined := s.enters(t, 0, "hall", "ada"); joined["roomMetadata"] != nil && joined["roomMetadata"] != "" {
		t.Errorf("a later room of the name has the metadata %v", joined["roomMetadata"])
	}
}

func participants(t *testing.T, s *servers, ada, bob *member) {
	t.Helper()
	ctx, one := t.Context(), s.client(1)
	list, err := one.ListParticipants(ctx, &livekit.ListParticipantsRequest{Room: "hall"})
	if err != nil || len(list.GetParticipants()) != 2 || list.GetParticipants()[0].GetIdentity() != "ada" || list.GetParticipants()[0].GetName() != "ADA" {
		t.Fatalf("the participants are %v, %v", list, err)
	}
	_, err = one.GetParticipant(ctx, &livekit.RoomParticipantIdentity{Room: "hall", Identity: "nobody"})
	refused(t, "nobody", err, twirp.NotFound)

	info, err := one.UpdateParticipant(ctx, &livekit.UpdateParticipantRequest{
		Room: "hall", Identity: "ada", Metadata: "teacher", Name: "Ada Lovelace", Attributes: map[string]string{"seat": "4"},
		Permission: &livekit.ParticipantPermission{CanSubscribe: true, CanPublish: true, CanPublishSources: []livekit.TrackSource{livekit.TrackSource_MICROPHONE}},
	})
	if err != nil || info.GetMetadata() != "teacher" || info.GetName() != "Ada Lovelace" || info.GetAttributes()["seat"] != "4" || len(info.GetPermission().GetCanPublishSources()) != 1 || info.GetPermission().GetCanPublishData() {
		t.Errorf("ada is updated as %v, %v", info, err)
	}
	told := ada.hearsType("permissions")
	if may, ok := told["permissions"].(map[string]any); !ok || may["chat"] != false || len(may["sources"].([]any)) != 1 {
		t.Errorf("ada is told %v", told)
	}
	bob.hears("ada's new metadata", func(said map[string]any) bool {
		entry, ok := said["peer"].(map[string]any)
		return ok && said["type"] == "peer-updated" && entry["identity"] == "ada" && entry["metadata"] == "teacher" && entry["name"] == "Ada Lovelace"
	})
	_, err = one.UpdateParticipant(ctx, &livekit.UpdateParticipantRequest{Room: "hall", Identity: "ada", Metadata: strings.Repeat("x", 9000)})
	refused(t, "too much metadata", err, twirp.InvalidArgument)
}

func moderation(t *testing.T, s *servers, ada, bob *member) {
	t.Helper()
	ctx, one := t.Context(), s.client(0)
	bobs, err := one.GetParticipant(ctx, &livekit.RoomParticipantIdentity{Room: "hall", Identity: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	for _, track := range bobs.GetTracks() {
		if track.GetSource() != livekit.TrackSource_MICROPHONE {
			continue
		}
		muted, err := one.MutePublishedTrack(ctx, &livekit.MuteRoomTrackRequest{Room: "hall", Identity: "bob", TrackSid: track.GetSid(), Muted: true})
		if err != nil || !muted.GetTrack().GetMuted() || muted.GetTrack().GetSid() != track.GetSid() {
			t.Errorf("bob's microphone is muted as %v, %v", muted, err)
		}
		if told := bob.hearsType("muted-by"); told["source"] != "microphone" {
			t.Errorf("bob is told %v", told)
		}
	}
	_, err = one.MutePublishedTrack(ctx, &livekit.MuteRoomTrackRequest{Room: "hall", Identity: "bob", TrackSid: "TR_none", Muted: true})
	refused(t, "a track that is none", err, twirp.NotFound)
	_, err = one.MutePublishedTrack(ctx, &livekit.MuteRoomTrackRequest{Room: "hall", Identity: "bob", TrackSid: "TR_none"})
	refused(t, "to unmute somebody", err, twirp.FailedPrecondition)
	_, err = one.SendData(ctx, &livekit.SendDataRequest{Room: "nowhere", Data: []byte("x")})
	refused(t, "data for no room", err, twirp.NotFound)

	// What an application changed goes along when the room's node dies.
	for _, media := range s.media {
		_ = media.Process.Kill()
		break
	}
	holds(t, "ada is in the room again, as the application made her", func() bool {
		info, err := one.GetParticipant(ctx, &livekit.RoomParticipantIdentity{Room: "hall", Identity: "ada"})
		return err == nil && info.GetMetadata() == "teacher" && info.GetAttributes()["seat"] == "4" && len(info.GetPermission().GetCanPublishSources()) == 1
	})
	holds(t, "the room has its metadata", func() bool {
		listed, err := one.ListRooms(ctx, &livekit.ListRoomsRequest{})
		return err == nil && len(listed.GetRooms()) == 1 && listed.GetRooms()[0].GetMetadata() == "lesson 2"
	})
	if _, err := one.RemoveParticipant(ctx, &livekit.RoomParticipantIdentity{Room: "hall", Identity: "bob"}); err != nil {
		t.Error(err)
	}
	if told := bob.hearsType("bye"); told["code"] != "kicked" {
		t.Errorf("bob is told %v", told)
	}
	_ = ada
}

// TestTokensThatDoNotSuffice are refused as LiveKit refuses them.
func TestTokensThatDoNotSuffice(t *testing.T) {
	s := newServers(t)
	wrong := lksdk.NewRoomServiceClient("http://"+s.pages[0], roomsKey, strings.Repeat("x", 32))
	_, err := wrong.ListRooms(t.Context(), &livekit.ListRoomsRequest{})
	refused(t, "a token of another secret", err, twirp.Unauthenticated)
	_, err = s.client(0).CreateRoom(t.Context(), &livekit.CreateRoomRequest{Name: "bad\nname"})
	refused(t, "a name that is none", err, twirp.InvalidArgument)
}
