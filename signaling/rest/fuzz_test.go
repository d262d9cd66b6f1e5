package rest

import (
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/control"
)

// FuzzReplies: whatever a media node replies about its rooms, an operator is answered with JSON.
func FuzzReplies(f *testing.F) {
	seed, err := proto.Marshal(&control.RoomsReply{Node: "sfu-1", Rooms: []*control.HeldRoom{{Room: "lobby", Peers: []*control.HeldPeer{{Id: "p-1", Media: &control.MediaState{
		Slots: []*control.SlotState{{Mid: "0", AskedMsAgo: -1}, {}}, Tracks: []*control.TrackState{{Rid: "q"}, {}}, Unplaced: []*control.Stream{{Ssrc: 1}, {}},
	}}, {}}}, {}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, text []byte) {
		var reply control.RoomsReply
		if proto.Unmarshal(text, &reply) != nil {
			return
		}
		if _, err := json.Marshal(roomsAnswer{Rooms: heldRooms(&reply)}); err != nil {
			t.Fatal(err)
		}
	})
}
