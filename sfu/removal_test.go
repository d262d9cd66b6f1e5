package sfu

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
)

func TestWhoIsRemovedIsToldAndStaysOut(t *testing.T) {
	s := newStage(t, "one")
	alice, _ := s.attach("room", "alice", 1)
	phone, _ := s.attach("room", "bob-phone", 1, func(a *control.Attach) { a.Peer.Identity = "bob" })
	laptop, _ := s.attach("room", "bob-laptop", 1, func(a *control.Attach) { a.Peer.Identity = "bob" })
	elsewhere, _ := s.attach("other", "bob-elsewhere", 1, func(a *control.Attach) { a.Peer.Identity = "bob" })
	remove := func(request *control.RemoveRequest) []string {
		reply, err := s.client.Remove(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Sorted(slices.Values(reply.GetRemoved()))
	}
	if got := remove(&control.RemoveRequest{Room: "room", Identity: "nobody"}); got != nil {
		t.Errorf("nobody is %v", got)
	}
	if got := remove(&control.RemoveRequest{Room: "closed", Identity: "bob"}); got != nil {
		t.Errorf("a closed room has %v", got)
	}
	if got := remove(&control.RemoveRequest{Room: "room", Identity: "bob"}); !slices.Equal(got, []string{"bob-laptop", "bob-phone"}) {
		t.Errorf("removed %v", got)
	}
	for _, gone := range []*attachStream{phone, laptop} {
		if last := gone.awaitEnd(); last.GetRefused().GetCode() != control.Refusal_REFUSAL_REMOVED {
			t.Errorf("the last event is %v, want that it was removed", last)
		}
	}
	for range 2 {
		alice.await("a leave", func(e *control.PeerEvent) bool { return e.GetRosterChange().GetLeft() != "" })
	}
	// A resume, on whatever signaling node, is refused; the person may join anew, and other rooms are not meant.
	if got := s.refusal(s.attachMessage(s.pin(s.epoch), "room", "bob-phone", 9)); got.GetCode() != control.Refusal_REFUSAL_REMOVED {
		t.Errorf("a resume is answered %v", got)
	}
	s.attach("room", "bob-again", 1, func(a *control.Attach) { a.Peer.Identity = "bob" })
	elsewhere.send(&control.PeerMessage{Message: &control.PeerMessage_Mute{Mute: &control.Mute{Source: control.Source_SOURCE_MICROPHONE, Muted: true}}})
	elsewhere.await("its own mute", func(e *control.PeerEvent) bool { return e.GetRosterChange().GetUpdated().GetId() == "bob-elsewhere" })
	if got := remove(&control.RemoveRequest{Room: "room", Peer: "alice"}); !slices.Equal(got, []string{"alice"}) {
		t.Errorf("removed %v", got)
	}
	for _, bad := range []*control.RemoveRequest{{Room: "room"}, {Peer: "alice"}, {Room: "room", Peer: "alice", Identity: "alice"}, {Room: "room", Peer: "alice", Everybody: true}} {
		if _, err := s.client.Remove(t.Context(), bad); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v is answered %v", bad, err)
		}
	}
}

// TestACallIsEndedForEverybody: all are told, the room closes, and whoever attaches later opens it anew.
func TestACallIsEndedForEverybody(t *testing.T) {
	s := newStage(t, "one")
	alice, _ := s.attach("room", "alice", 1)
	bob, _ := s.attach("room", "bob", 1)
	elsewhere, _ := s.attach("other", "bob-elsewhere", 1)
	reply, err := s.client.Remove(t.Context(), &control.RemoveRequest{Room: "room", Everybody: true})
	if err != nil || !slices.Equal(slices.Sorted(slices.Values(reply.GetRemoved())), []string{"alice", "bob"}) || len(reply.GetIdentities()) != 2 {
		t.Fatalf("answered %v, %v", reply, err)
	}
	for _, gone := range []*attachStream{alice, bob} {
		if last := gone.awaitEnd().GetRefused(); last.GetCode() != control.Refusal_REFUSAL_REMOVED || !last.GetEnded() {
			t.Errorf("the last event is %v, want that the call was ended", last)
		}
	}
	testkit.Eventually(t, "the room to be forgotten", func() bool {
		reply, err := s.client.Remove(t.Context(), &control.RemoveRequest{Room: "room", Everybody: true})
		return err == nil && len(reply.GetRemoved()) == 0
	})
	_, attached := s.attach("room", "carol", 1)
	if people := attached.GetRoster(); len(people) != 1 {
		t.Errorf("the new room has %v", people)
	}
	elsewhere.send(&control.PeerMessage{Message: &control.PeerMessage_Mute{Mute: &control.Mute{Source: control.Source_SOURCE_MICROPHONE, Muted: true}}})
	elsewhere.await("its own mute", func(e *control.PeerEvent) bool { return e.GetRosterChange().GetUpdated().GetId() == "bob-elsewhere" })
}

func TestWhoIsExpectedCanBeRemoved(t *testing.T) {
	s := newStage(t, "one")
	alice, _ := s.attach("room", "alice", 1, func(a *control.Attach) {
		a.Expected = []*control.Peer{{Id: "bob", Identity: "bob", Name: "bob"}}
	})
	if _, err := s.client.Remove(t.Context(), &control.RemoveRequest{Room: "room", Peer: "bob"}); err != nil {
		t.Fatal(err)
	}
	alice.await("bob's leave", func(e *control.PeerEvent) bool { return e.GetRosterChange().GetLeft() == "bob" })
	if got := s.refusal(s.attachMessage(s.pin(s.epoch), "room", "bob", 2)); got.GetCode() != control.Refusal_REFUSAL_REMOVED {
		t.Errorf("bob's arrival is answered %v", got)
	}
}
