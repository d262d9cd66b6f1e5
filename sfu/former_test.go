package sfu

import (
	"testing"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

// TestAFormerOwnerAppointsNobody: a node that knows a higher fence of the room is no branch under a lower one.
func TestAFormerOwnerAppointsNobody(t *testing.T) {
	s := newStage(t, "branch")
	former, present := s.pin(s.epoch), s.pin(s.epoch+1)
	former.Node, former.Boot = "former", "1769000000000-former"
	present.Node, present.Boot = "present", "1769000000000-present"
	s.node.Fence("room", present)
	if _, refused := s.node.branch(t.Context(), "room", former, 1); refused == nil || refused.current != present.Fence {
		t.Errorf("the former owner's appointment is refused with %v", refused)
	}
	if _, refused := s.node.branch(t.Context(), "room", present, 1); refused != nil {
		t.Errorf("the present owner's appointment is refused: %v", refused)
	}
}

// TestAFormerOwnerIsAppointed: a node that has not heard that its room is elsewhere has one room, not an own one beside the branch.
func TestAFormerOwnerIsAppointed(t *testing.T) {
	s := newSpreadRoom(t, 1)
	former := s.branches[0]
	one, _ := former.attach("room", "one", 1, knowsPlaces)
	s.epoch++
	s.attach("room", "host", 1, knowsPlaces)
	s.spread()
	if held := former.node.Held(); len(held) > 0 {
		t.Errorf("the former owner still has %v", held)
	}
	if last := one.awaitEnd(); last.GetFenced().GetPin().GetNode() != string(s.node.cfg.Node) {
		t.Errorf("its people are told %v", last)
	}
}

// TestABranchKnowsTheRemoved: so that it can go on as the owner.
func TestABranchKnowsTheRemoved(t *testing.T) {
	s := newSpreadRoom(t, 1)
	s.attach("room", "host", 1, knowsPlaces)
	s.attach("room", "two", 1, knowsPlaces)
	s.spread()
	if _, err := s.client.Remove(t.Context(), &control.RemoveRequest{Room: "room", Peer: "two"}); err != nil {
		t.Fatal(err)
	}
	r := s.branches[0].node.branchOf("room")
	eventually(t, "the branch knows who was removed", func() bool {
		removed := false
		return r.do(t.Context(), func() { removed = r.acts.moderation.removed["two"] }) == nil && removed
	})
}

// TestAPromotedBranchKnowsWhoseGrantWasTakenBack: also of people who had left, before and after it was appointed.
func TestAPromotedBranchKnowsWhoseGrantWasTakenBack(t *testing.T) {
	s := newSpreadRoom(t, 1)
	s.attach("room", "host", 1, knowsPlaces)
	byToken := func(a *control.Attach) { a.Peer.Moderator = true }
	demoted := func(id string) *attachStream {
		e, _ := s.attach("room", id, 1, byToken)
		s.moderate(&control.ModerateRequest{Act: control.Act_ACT_GIVE_UP, Peer: id})
		return e
	}
	leave := &control.PeerMessage{Message: &control.PeerMessage_Leave{Leave: &control.Leave{}}}
	demoted("before").send(leave)
	host := s.roomOf()
	has := func(r *room, id forward.PeerID) (has bool) {
		must(t, r.do(t.Context(), func() { has = r.peers[id] != nil }))
		return has
	}
	eventually(t, "the first one has left", func() bool { return !has(host, "before") })
	s.spread()
	first := s.branches[0]
	r := first.node.branchOf("room")
	after := demoted("after")
	eventually(t, "the branch knows the second one", func() bool { return has(r, "after") })
	after.send(leave)
	eventually(t, "the branch knows that the second one has left", func() bool { return !has(r, "after") })
	s.stop()
	for _, id := range []string{"before", "after"} {
		again := first.attachMessage(first.pin(s.epoch+1), "room", id, 2)
		byToken(again.GetAttach())
		_, attached := attachedAt(first, again)
		for _, p := range attached.GetRoster() {
			if p.GetId() == id && p.GetModerator() {
				t.Errorf("%s runs the room", id)
			}
		}
	}
}

// TestABranchThatWasGivenUpIsNotLinked: its link may have been under way.
func TestABranchThatWasGivenUpIsNotLinked(t *testing.T) {
	s := newSpreadRoom(t, 1)
	s.attach("room", "host", 1, knowsPlaces)
	r := s.roomOf()
	if err := r.do(t.Context(), func() {
		m := r.spreading.appoint(s.branches[0].node.roomPlace(), "a test")
		r.members.giveUp(m)
		link := r.node.newLinkStream(idleMedia{}, &r.current, r.log)
		r.branches.begin(m, link)
		if m.link != nil {
			t.Error("the link is the branch's")
		}
		select {
		case <-link.ended:
		default:
			t.Error("the link goes on")
		}
	}); err != nil {
		t.Fatal(err)
	}
}
