package sfu

import (
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
)

func listsPeople(limit int) func(*Config) {
	return func(c *Config) { c.Limits.ListedPerRoom = limit }
}

// watches is an Attach of somebody who only watches, by a signaling node that knows the audience.
func watches(a *control.Attach) {
	knowsPlaces(a)
	a.CanPublish, a.KnowsAudience = false, true
}

// isJoined reports whether somebody is listed by an event.
func isJoined(t *testing.T, e *control.PeerEvent, peer string) bool {
	t.Helper()
	changes, err := control.DecodeRosterChanges(e.GetRosterChanges())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if p := c.GetJoined(); p.GetId() == peer && !p.GetUnlisted() {
			return true
		}
	}
	return false
}

// awaitAudience waits until a stream is told of so many, and fails if before that a peer is listed.
func (e *attachStream) awaitAudience(t *testing.T, people uint32, unlisted string) {
	t.Helper()
	e.await("the audience", func(event *control.PeerEvent) bool {
		if isJoined(t, event, unlisted) {
			t.Errorf("%s is listed", unlisted)
		}
		return event.GetAudience() != nil && event.GetAudience().GetPeople() == people
	})
}

// TestTheAudienceIsCounted: beyond the limit who only watches is counted, and sees the roster and its own entry apart from it. Others are
// listed all the same.
func TestTheAudienceIsCounted(t *testing.T) {
	s := newStage(t, "one", listsPeople(2))
	host, _ := s.attach("room", "host", 1, knowsPlaces)
	if _, attached := s.attach("room", "listed", 1, watches); attached.GetOwn() != nil || len(attached.GetRoster()) != 2 {
		t.Errorf("within the limit: %v", attached)
	}
	_, attached := s.attach("room", "watcher", 1, watches)
	if attached.GetOwn().GetId() != "watcher" || rosterIDs(attached.GetRoster()) != "host listed " || attached.GetAudience() != 1 || attached.GetRun() == 0 {
		t.Errorf("beyond the limit: %v", attached)
	}
	host.awaitAudience(t, 1, "watcher")
	for peer, edit := range map[string]func(*control.Attach){
		"publisher": func(a *control.Attach) { a.CanPublish = true },
		"moderator": func(a *control.Attach) { a.Peer.Moderator = true },
		"older":     func(a *control.Attach) { a.KnowsAudience = false },
	} {
		if _, attached := s.attach("room", peer, 1, watches, edit); attached.GetOwn() != nil {
			t.Errorf("the %s is unlisted", peer)
		}
	}
	if _, attached := s.attach("room", "watcher", 2, watches, func(a *control.Attach) { a.KnowsAudience = false }); attached.GetOwn() != nil {
		t.Error("a watcher stays unlisted when an older signaling node has it")
	}
}

// TestWhoSaysSomethingIsListed: a hand, a line and the permission to publish list somebody of the audience.
func TestWhoSaysSomethingIsListed(t *testing.T) {
	s := newStage(t, "one", listsPeople(1))
	host, _ := s.attach("room", "host", 1, knowsPlaces)
	streams := map[string]*attachStream{}
	for _, peer := range []string{"hand", "line", "grant", "quiet"} {
		streams[peer], _ = s.attach("room", peer, 1, watches)
	}
	host.awaitAudience(t, 4, "hand")
	streams["hand"].send(&control.PeerMessage{Message: &control.PeerMessage_Hand{Hand: &control.Hand{Raised: true}}})
	streams["line"].send(&control.PeerMessage{Message: &control.PeerMessage_Say{Say: &control.Say{Text: "hello", Id: "1"}}})
	update := &control.Update{Permission: &control.Permission{CanPublish: true}}
	if _, err := s.client.Moderate(t.Context(), &control.ModerateRequest{Room: "room", Act: control.Act_ACT_UPDATE, Peer: "grant", Update: update}); err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	host.await("three people in the roster", func(e *control.PeerEvent) bool {
		for peer := range streams {
			listed[peer] = listed[peer] || isJoined(t, e, peer)
		}
		return listed["hand"] && listed["line"] && listed["grant"]
	})
	host.awaitAudience(t, 1, "quiet")
	if listed["quiet"] {
		t.Error("who says nothing is listed")
	}
	streams["hand"].await("its own place in the roster", func(e *control.PeerEvent) bool { return isJoined(t, e, "hand") })
}

// TestThePlacesOfWhoLeftAreFilled: the audience moves up, after the time in which the people of a former node come.
func TestThePlacesOfWhoLeftAreFilled(t *testing.T) {
	s := newStage(t, "one", listsPeople(2))
	s.attach("room", "host", 1, knowsPlaces)
	listed, _ := s.attach("room", "listed", 1, watches)
	first, _ := s.attach("room", "first", 1, watches)
	s.attach("room", "second", 1, watches)
	r := s.roomOf()
	if err := r.do(t.Context(), func() { r.roll.began = r.roll.began.Add(-r.node.cfg.Grace) }); err != nil {
		t.Fatal(err)
	}
	listed.send(&control.PeerMessage{Message: &control.PeerMessage_Leave{Leave: &control.Leave{}}})
	first.await("the free place", func(e *control.PeerEvent) bool {
		if isJoined(t, e, "second") {
			t.Error("who came later moves up")
		}
		return isJoined(t, e, "first")
	})
	eventually(t, "one person is left in the audience", func() bool {
		people := 0
		return r.do(t.Context(), func() { people = len(r.peers.audience()) }) == nil && people == 1
	})
}

// TestTheAudienceAtBranches: the owner decides for all nodes. When it dies, the audience at the other branches stays where it is.
func TestTheAudienceAtBranches(t *testing.T) {
	s := newSpreadRoom(t, 2, listsPeople(1))
	host, _ := s.attach("room", "host", 1, knowsPlaces)
	s.spread()
	first, second := s.branches[0], s.branches[1]
	at := func(b *stage, epoch uint64, peer string, generation uint64) *control.PeerMessage {
		message := b.attachMessage(first.pin(epoch), "room", peer, generation)
		if epoch == s.epoch {
			message = s.attachMessage(s.pin(epoch), "room", peer, generation)
		} else {
			message.GetAttach().Peer.Unlisted = true
		}
		watches(message.GetAttach())
		return message
	}
	_, attached := attachedAt(first, at(first, s.epoch, "one", 1))
	if attached.GetOwn().GetId() != "one" || rosterIDs(attached.GetRoster()) != "host " {
		t.Errorf("at a branch: %v", attached)
	}
	two, _ := attachedAt(second, at(second, s.epoch, "two", 1))
	three, _ := attachedAt(second, at(second, s.epoch, "three", 1))
	host.awaitAudience(t, 3, "one")
	two.awaitAudience(t, 3, "one")
	three.send(&control.PeerMessage{Message: &control.PeerMessage_Hand{Hand: &control.Hand{Raised: true}}})
	for _, e := range []*attachStream{host, two, three} {
		e.await("the hand", func(e *control.PeerEvent) bool { return isJoined(t, e, "three") })
	}
	s.stop()
	back, _ := attachedAt(first, at(first, s.epoch+1, "one", 2))
	back.awaitAudience(t, 2, "two")
	r := first.node.branchOf("room")
	if r != nil {
		t.Fatal("the branch is not promoted")
	}
	moved := two.awaitEnd().GetElsewhere() != nil
	_, attached = attachedAt(second, at(second, s.epoch+1, "two", 2))
	if moved || !attached.GetWasHere() || attached.GetOwn().GetId() != "two" {
		t.Errorf("the audience of another branch was moved: %v, was attached again: %v", moved, attached)
	}
	if r := first.roomOf(); r.do(t.Context(), func() {
		if p := r.peers["two"]; p == nil || p.place == nil || time.Since(r.roll.began) > r.node.cfg.Grace {
			t.Errorf("the new owner knows %v", p)
		}
	}) != nil {
		t.Error("the new owner is gone")
	}
}
