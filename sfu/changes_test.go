package sfu

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/sfu/forward"
)

func knowsRosterChanges(a *control.Attach) { a.KnowsRosterChanges = true }

// roomOf is the open room of the stage.
func (s *stage) roomOf() *room {
	s.t.Helper()
	held := s.node.Held()
	s.node.mu.Lock()
	defer s.node.mu.Unlock()
	return s.node.rooms[held[0].Room]
}

// watchedRoster is what a signaling node knows of the room by one stream.
type watchedRoster struct {
	stream *attachStream
	seq    uint64
	people map[string]*control.Peer
	events int
}

func (w *watchedRoster) take(e *control.PeerEvent) {
	if e.GetRosterChanges() == nil {
		return
	}
	w.events++
	var told control.RosterChanges
	if err := proto.Unmarshal(e.GetRosterChanges(), &told); err != nil {
		w.stream.t.Fatal(err)
	}
	for _, c := range told.GetChanges() {
		switch {
		case c.GetJoined() != nil:
			w.people[c.GetJoined().GetId()] = c.GetJoined()
		case c.GetUpdated() != nil:
			w.people[c.GetUpdated().GetId()] = c.GetUpdated()
		default:
			delete(w.people, c.GetLeft())
		}
	}
	w.seq = e.GetSeq()
}

// crowd attaches so many people, and returns the roster of the first.
func (s *stage) crowd(people int, edits ...func(*control.Attach)) *watchedRoster {
	s.t.Helper()
	first, attached := s.attach("room", "first", 1, edits...)
	w := &watchedRoster{stream: first, people: map[string]*control.Peer{}}
	for _, p := range attached.GetRoster() {
		w.people[p.GetId()] = p
	}
	for i := range people - 1 {
		s.attach("room", fmt.Sprint("p", i), 1, edits...)
	}
	return w
}

// Half of a large room leaves in one task, as the people of a dead signaling node do. More events than an outbox holds would end every
// stream.
func TestHalfOfALargeRoomLeavesAtOnce(t *testing.T) {
	const stay, leave = gatherFrom + 10, outboxEvents + 50
	s := newStage(t, "one")
	w := s.crowd(stay, knowsRosterChanges)
	r := s.roomOf()
	// Those who leave have no streams: a stream each would be most of the test's time.
	if err := r.do(t.Context(), func() {
		for i := range leave {
			p := &peer{id: forward.PeerID(fmt.Sprint("leaver", i)), entry: &control.Peer{Id: fmt.Sprint("leaver", i)}}
			r.peers[p.id] = p
			r.roll.announce(p, &control.RosterChange{Change: &control.RosterChange_Joined{Joined: p.entry}})
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := r.do(t.Context(), func() {
		for i := range leave {
			r.people.remove(r.peers[forward.PeerID(fmt.Sprint("leaver", i))], "left")
		}
	}); err != nil {
		t.Fatal(err)
	}
	before := w.events
	w.stream.await("everybody's leave", func(e *control.PeerEvent) bool {
		w.take(e)
		return len(w.people) == stay && w.people["leaver0"] == nil && w.seq == stay+2*leave
	})
	if told := w.events - before; told > stay {
		t.Errorf("%d changes were told in %d events", 2*leave, told)
	}
	for _, held := range s.rooms().GetRooms()[0].GetPeers() {
		if !held.GetAttached() {
			t.Fatalf("%s lost its stream", held.GetId())
		}
	}
}

func TestASmallRoomIsToldAtOnceAndAnOlderNodeOneByOne(t *testing.T) {
	s := newStage(t, "one")
	w := s.crowd(1, knowsRosterChanges)
	older, attached := s.attach("room", "older", 1)
	if attached.GetRun() == 0 {
		t.Error("the room has no run")
	}
	hidden, attached := s.attach("room", "spy", 1, knowsRosterChanges, func(a *control.Attach) { a.Peer.Hidden = true })
	if attached.GetRun() != 0 {
		t.Error("a hidden peer shares its roster")
	}
	s.attach("room", "bob", 1, knowsRosterChanges)
	w.stream.await("bob's join", func(e *control.PeerEvent) bool { w.take(e); return w.people["bob"] != nil })
	if w.events != 2 || w.people["spy"] != nil {
		t.Errorf("%d events told of %v", w.events, w.people)
	}
	older.await("bob's join", func(e *control.PeerEvent) bool {
		if e.GetRosterChanges() != nil {
			t.Error("an older node is told of changes that it does not know")
		}
		return e.GetRosterChange().GetJoined().GetId() == "bob"
	})
	hidden.await("bob's join", func(e *control.PeerEvent) bool { return e.GetRosterChanges() != nil })
	hidden.send(&control.PeerMessage{Message: &control.PeerMessage_Mute{Mute: &control.Mute{Source: control.Source_SOURCE_MICROPHONE, Muted: true}}})
	hidden.await("its own mute", func(e *control.PeerEvent) bool { return e.GetRosterChange().GetUpdated().GetId() == "spy" })
}

func TestGatheredChangesAreOneForEachPeer(t *testing.T) {
	joined := func(id, name string) *control.RosterChange {
		return &control.RosterChange{Change: &control.RosterChange_Joined{Joined: &control.Peer{Id: id, Name: name}}}
	}
	updated := func(id, name string) *control.RosterChange {
		return &control.RosterChange{Change: &control.RosterChange_Updated{Updated: &control.Peer{Id: id, Name: name}}}
	}
	left := func(id string) *control.RosterChange {
		return &control.RosterChange{Change: &control.RosterChange_Left{Left: id}}
	}
	var c rosterChanges
	for _, change := range []*control.RosterChange{joined("a", "1"), updated("b", "1"), updated("a", "2"), left("c"), joined("c", "3"), updated("b", "2"), left("d")} {
		c.add(change)
	}
	want := []*control.RosterChange{joined("a", "2"), joined("c", "3"), updated("b", "2"), left("d")}
	if len(c.untold) != len(want) {
		t.Fatalf("%v waits", c.untold)
	}
	for i, change := range c.untold {
		if !proto.Equal(change, want[i]) {
			t.Errorf("change %d is %v, want %v", i, change, want[i])
		}
	}
}

// TestWhoComesBetweenTwoMutesIsTold: alice mutes her camera and unmutes it at once. Bob, who came in between, has seen it muted.
func TestWhoComesBetweenTwoMutesIsTold(t *testing.T) {
	s := newStage(t, "one")
	s.attach("room", "alice", 1)
	// What follows within a while is told at its end.
	s.onLoop("room", func(r *room) { r.roll.tell(r.peers["alice"]) })
	mute := func(muted bool) {
		s.onLoop("room", func(r *room) {
			r.peers["alice"].toldAt = time.Now()
			r.acts.mute(r.peers["alice"], &control.Mute{Source: control.Source_SOURCE_CAMERA, Muted: muted})
		})
	}
	mute(true)
	bob, attached := s.attach("room", "bob", 1)
	mute(false)
	if i := slices.IndexFunc(attached.GetRoster(), func(p *control.Peer) bool { return p.GetId() == "alice" }); !attached.GetRoster()[i].GetVideoMuted() {
		t.Fatal("bob came too late")
	}
	bob.await("that alice shows her camera", func(e *control.PeerEvent) bool {
		entry := e.GetRosterChange().GetUpdated()
		return entry.GetId() == "alice" && !entry.GetVideoMuted()
	})
}
