package twirp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/signaling/twirp/twirppb"
)

// FuzzRequests: whatever a program sends is read or refused in either encoding, and what is read is checked, without a panic.
func FuzzRequests(f *testing.F) {
	f.Add(`{"name":"hall","max_participants":2,"metadata":"m"}`)
	f.Add(`{"room":"hall","identity":"ada","attributes":{"seat":"4"},"permission":{"can_publish":true,"can_publish_sources":["CAMERA"]}}`)
	binary, err := proto.Marshal(&twirppb.UpdateParticipantRequest{Room: "hall", Identity: "ada", Metadata: "m"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(binary))
	held := &control.HeldPeer{Id: "p-1", Identity: "ada", Entry: &control.Peer{Id: "p-1", Attributes: map[string]string{"a": "b"}}}
	f.Fuzz(func(t *testing.T, body string) {
		for _, encode := range encodings() {
			read := func(into proto.Message) bool {
				return encode.read(httptest.NewRequest(http.MethodPost, servicePath+"X", strings.NewReader(body)), into) == nil
			}
			if create := (&twirppb.CreateRoomRequest{}); read(create) {
				_ = checkCreate(create)
			}
			if update := (&twirppb.UpdateParticipantRequest{}); read(update) {
				if changed, err := updateOf(update, held); (changed == nil) == (err == nil) {
					t.Errorf("%q is read as %v and refused as %v", body, changed, err)
				}
			}
			for _, other := range []proto.Message{&twirppb.ListRoomsRequest{}, &twirppb.RoomParticipantIdentity{}, &twirppb.MuteRoomTrackRequest{}, &twirppb.UpdateRoomMetadataRequest{}} {
				read(other)
			}
		}
	})
}
