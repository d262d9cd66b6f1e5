package sfu

import (
	"context"
	"strconv"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/sfu/cascade"
)

// FuzzLinkMessage lets two messages of a room's other node come as they may, to an owner and to a branch: nothing may panic or block.
func FuzzLinkMessage(f *testing.F) {
	for _, m := range linkMessagesOfAll() {
		one, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(one, one)
	}
	s := newStage(f, "fuzzed")
	s.node.join = func(context.Context, cascade.Peer, cascade.LinkConfig) (linkMedia, error) { return idleMedia{}, nil }
	s.attach("room", "two", 1) // The node is running when somebody could attach.
	opened := uint64(0)
	f.Fuzz(func(t *testing.T, one, two []byte) {
		var messages []*control.LinkMessage
		for _, text := range [][]byte{one, two} {
			m := &control.LinkMessage{}
			if proto.Unmarshal(text, m) != nil {
				return
			}
			messages = append(messages, m)
		}
		opened++
		hearAsOwner(t, s, opened, messages)
		hearAsBranch(t, s, ring.RoomID("branch-"+strconv.FormatUint(opened, 10)), messages)
		if broken := s.node.panics.Count(); broken > 0 {
			t.Fatalf("%d panics", broken)
		}
	})
}

// hearAsOwner has the room's owner hear a branch that has one of the people.
func hearAsOwner(t *testing.T, s *stage, number uint64, messages []*control.LinkMessage) {
	t.Helper()
	session, refused := s.node.attach(t.Context(), s.attachMessage(s.pin(s.epoch), "room-"+strconv.FormatUint(number, 10), "one", 1))
	if refused != nil {
		t.Fatalf("no attach: %v", refused.message)
	}
	defer session.end()
	r := session.room
	link := r.node.newLinkStream(idleMedia{}, &r.current, r.log)
	m := newMember(&control.Place{Node: "other", Boot: "1769000000000-other"}, "a test", time.Now())
	must(t, r.do(t.Context(), func() {
		r.members.branches["other"], m.link = m, link
		if p := r.peers["one"]; p != nil {
			p.place = m
		}
	}))
	for _, message := range messages {
		r.branches.hear(t.Context(), m, link, message)
	}
	// Its last word ends the room, if none before did.
	_ = r.do(t.Context(), func() { delete(r.members.branches, "other"); r.end("the test is over") })
	<-r.done
}

// hearAsBranch has a new branch hear its owner, first of how the room is.
func hearAsBranch(t *testing.T, s *stage, room ring.RoomID, messages []*control.LinkMessage) {
	t.Helper()
	owner := pin.Pin{Fence: pin.Fence{Epoch: 5, Nonce: 1}, Node: "other", Boot: "1769000000000-other", Control: "other"}
	r, refused := s.node.branch(t.Context(), room, owner, 1)
	if refused != nil {
		t.Fatalf("no branch: %v", refused.message)
	}
	for _, message := range messages {
		link := r.node.newLinkStream(idleMedia{}, &r.current, r.log)
		told := message.GetAppoint()
		if told == nil {
			told = &control.Appoint{Peers: []*control.LinkPeer{{Entry: &control.Peer{Id: "one"}, Yours: true}}}
		}
		// A room that has ended, or was promoted by the first message, hears no owner.
		_ = r.do(t.Context(), func() {
			if r.members.owner != nil {
				r.branch.begin(link, owner, []*control.Appoint{told})
			}
		})
		r.branch.hear(link, message)
	}
	_ = r.do(t.Context(), func() { r.end("the test is over") })
	<-r.done
}

// linkMessagesOfAll has one message of each kind.
func linkMessagesOfAll() []*control.LinkMessage {
	peer := &control.Peer{Id: "one", Identity: "one", Name: "one"}
	attach := &control.Attach{Room: "room", Peer: peer, Generation: 9}
	higher := control.PinProto(pin.Pin{Fence: pin.Fence{Epoch: 9}, Node: "third", Boot: "1769000000000-third", Control: "third"})
	fenced := &control.PeerEvent{Event: &control.PeerEvent_Fenced{Fenced: &control.Fenced{Pin: higher}}}
	removed := &control.PeerEvent{Event: &control.PeerEvent_Refused{Refused: &control.Refused{Code: control.Refusal_REFUSAL_REMOVED}}}
	line := &control.PeerEvent{Event: &control.PeerEvent_Chat{Chat: &control.Chat{Peer: "one", Text: "hello", Seq: 3}}}
	place := &control.Place{Node: "third", Boot: "1769000000000-third"}
	mute := &control.PeerMessage{Message: &control.PeerMessage_Mute{Mute: &control.Mute{Source: control.Source_SOURCE_CAMERA, Muted: true}}}
	return []*control.LinkMessage{
		{Message: &control.LinkMessage_Appoint{Appoint: &control.Appoint{Peers: []*control.LinkPeer{{Entry: peer, Generation: 3}}, Removed: []string{"two"}}}},
		{Message: &control.LinkMessage_Told{Told: fenced}},
		{Message: &control.LinkMessage_Told{Told: line}},
		{Message: &control.LinkMessage_Personal{Personal: &control.LinkPersonal{Peer: "one", Event: removed}}},
		{Message: &control.LinkMessage_Entered{Entered: &control.LinkEntered{Id: 1, Entry: peer}}},
		{Message: &control.LinkMessage_Elsewhere{Elsewhere: &control.LinkElsewhere{Peer: "one", Elsewhere: &control.Elsewhere{Place: place}}}},
		{Message: &control.LinkMessage_Members{Members: &control.LinkMembers{Branches: []*control.Place{place}}}},
		{Message: &control.LinkMessage_Settings{Settings: "7 3 0 "}},
		{Message: &control.LinkMessage_Starved{Starved: &control.LinkStarved{Publisher: "one", Source: control.Source_SOURCE_CAMERA}}},
		{Message: &control.LinkMessage_Appointed{Appointed: &control.Appointed{Yours: []*control.LinkPeer{{Entry: peer, Generation: 4}}}}},
		{Message: &control.LinkMessage_Enter{Enter: &control.LinkEnter{Id: 1, Attach: attach}}},
		{Message: &control.LinkMessage_Said{Said: &control.LinkSaid{Peer: "one", Message: mute}}},
		{Message: &control.LinkMessage_Away{Away: &control.LinkAway{Peer: "one", Away: true}}},
		{Message: &control.LinkMessage_Left{Left: "one"}},
	}
}
