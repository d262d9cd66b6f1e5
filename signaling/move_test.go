package signaling

import (
	"context"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

func pinRoom(name string) ring.RoomID { return ring.RoomID(name) }

// TestMovedRoomsAreReached kills a node under two sessions and has the hub told.
func TestMovedRoomsAreReached(t *testing.T) {
	r, one, two, e := lobbyAndSpare(t)
	ada, joined := e.join("lobby", "Ada")
	ada.offer("o-1", true)
	hear[*wire.Answer](ada)
	ada.say(&wire.Mute{Source: wire.SourceCamera, Muted: true})
	ada.say(&wire.View{Wants: wire.List[wire.Want]{}})
	testkit.Eventually(t, "word of what she said", func() bool { return strings.HasSuffix(one.said(), "Ada views 0") })
	grace, _ := e.join("lobby", "Grace")
	hear[*wire.PeerJoined](ada)
	one.say("Ada", one.pin(firstEpoch).Fence, &control.PeerEvent{Event: &control.PeerEvent_Path{Path: &control.Path{BitsPerSecond: 400_000}}})
	one.say("Ada", one.pin(firstEpoch).Fence, &control.PeerEvent{Event: &control.PeerEvent_Speakers{Speakers: &control.Speakers{}}})
	hear[*wire.Speakers](ada) // so that what came before it is known
	rooms := e.Hub().PinnedTo(one.boot)
	if len(rooms) != 1 || rooms[0].Room != "lobby" || rooms[0].Peers != 2 || rooms[0].Expect.People != 2 || rooms[0].Pin != one.pin(firstEpoch) {
		t.Fatalf("pinned to sfu-1: %+v", rooms)
	}

	one.stop()
	to := two.pin(firstEpoch + 1)
	r.placer.set("lobby", to)
	for range 3 { // told by several, the clients hear it once
		e.Hub().Moved(context.Background(), "lobby", to)
	}
	e.Hub().Moved(context.Background(), "lobby", one.pin(firstEpoch))

	for _, c := range []*client{ada, grace} {
		restart := hear[*wire.Restart](c)
		if restart.Node != "sfu-2" || restart.Epoch != firstEpoch+1 || restart.Attempts != 3 || restart.AttemptMs != 4000 {
			t.Fatalf("restart %+v", restart)
		}
	}
	ada.offer("o-2", false)
	answered := false
	for range 2 { // in either order: the answer, and the roster that kept both
		switch m := nextBut[*wire.PeerJoined](ada).(type) {
		case *wire.Roster:
			if len(m.Roster) != 2 || m.Epoch != firstEpoch+1 {
				t.Fatalf("roster %+v", m)
			}
		case *wire.Answer:
			answered = m.ID == "o-2" && m.SDP == "answer of sfu-2 to offer o-2" && m.Epoch == firstEpoch+1
		default:
			t.Fatalf("heard %+v", m)
		}
	}
	if !answered {
		t.Fatal("the offer was not answered by the new node")
	}
	testkit.Eventually(t, "word at the new node", func() bool {
		said := two.said()
		return said == "Ada mutes SOURCE_CAMERA true\nAda views 0\nAda offers o-2 fresh=false slots=0" ||
			said == "Ada mutes SOURCE_CAMERA true\nAda views 0\nAda offers o-2 fresh=false slots=0\n"
	})
	for i, a := range two.attached() {
		named := len(a.GetExpected()) == 2 || i > 0 && len(a.GetExpected()) == 0 // whom the first has named
		if !named || a.GetKnownRoster() == 0 {
			t.Errorf("attached naming %v, digest %x", a.GetExpected(), a.GetKnownRoster())
		}
		if a.GetPeer().GetName() == "Ada" && (a.GetPeer().GetId() != string(joined.Peer) || !a.GetPeer().GetVideoMuted() || a.GetExpectedSize() != 2) {
			t.Errorf("Ada attached with %v", a)
		}
		if want := map[string]uint64{"Ada": 400_000}[a.GetPeer().GetName()]; a.GetPathBitsPerSecond() != want {
			t.Errorf("%s attached with a path of %d, want %d", a.GetPeer().GetName(), a.GetPathBitsPerSecond(), want)
		}
	}
	if rooms := e.Hub().PinnedTo(two.boot); len(rooms) != 1 {
		t.Errorf("pinned to sfu-2: %+v", rooms)
	}
}

// nextBut reads one message, passing over those of a kind.
func nextBut[M wire.Message](c *client) wire.Message {
	c.t.Helper()
	for {
		m := c.next()
		if _, ok := m.(M); !ok {
			return m
		}
	}
}

// TestABrokenLinkIsNoDeath breaks the stream, not the node: the same peer is there again,
// and the client is told its slots only: the people are the same.
func TestABrokenLinkIsNoDeath(t *testing.T) {
	_, n, e := lobby(t)
	ada, _ := e.join("lobby", "Ada")
	ada.offer("o-1", true)
	hear[*wire.Answer](ada)
	n.breakLinks()
	if m := hear[*wire.Slots](ada); m.Node != "sfu-1" || m.Epoch != firstEpoch {
		t.Fatalf("the media goes on at %s under epoch %d", m.Node, m.Epoch)
	}
	attaches := n.attached()
	if len(attaches) != 2 || attaches[1].GetGeneration() <= attaches[0].GetGeneration() {
		t.Fatalf("attached %v", attaches)
	}
	// An offer that was under way is said again, and answered once.
	n.set(func() { n.silent = true })
	ada.offer("o-2", false)
	testkit.Eventually(t, "second offer", func() bool {
		return n.said() == "Ada offers o-1 fresh=true slots=0\nAda offers o-2 fresh=false slots=0"
	})
	n.set(func() { n.silent = false })
	n.breakLinks()
	hear[*wire.Slots](ada)
	if a := hear[*wire.Answer](ada); a.ID != "o-2" {
		t.Fatalf("answer %+v", a)
	}
	// A node that lost the connection meanwhile: the client is told to make a new one.
	n.set(func() { n.gone[attaches[0].GetPeer().GetId()] = true })
	n.breakLinks()
	if m := hear[*wire.Resumed](ada); m.MediaAlive || m.Epoch != firstEpoch || m.Resume == "" {
		t.Fatalf("heard %+v", m)
	}
}

// TestAHigherPinAtTheSameNodeIsTold promotes a branch: the client's media goes on there, and its reports are of the new pin.
func TestAHigherPinAtTheSameNodeIsTold(t *testing.T) {
	r, n, e := lobby(t)
	ada, _ := e.join("lobby", "Ada")
	ada.offer("o-1", true)
	hear[*wire.Answer](ada)
	to := n.pin(firstEpoch + 5)
	r.placer.set("lobby", to)
	n.say("Ada", to.Fence, &control.PeerEvent{Event: &control.PeerEvent_Fenced{Fenced: &control.Fenced{Current: control.FenceProto(to.Fence)}}})
	if m := hear[*wire.Slots](ada); m.Node != "sfu-1" || m.Epoch != firstEpoch+5 {
		t.Fatalf("the media goes on at %s under epoch %d", m.Node, m.Epoch)
	}
}

// TestFencedSessionsFollowTheRoom has the old node tell of a higher fence.
func TestFencedSessionsFollowTheRoom(t *testing.T) {
	r, one, two, e := lobbyAndSpare(t)
	ada, _ := e.join("lobby", "Ada")
	to := two.pin(firstEpoch + 5)
	r.placer.set("lobby", to)
	one.say("Ada", to.Fence, &control.PeerEvent{Event: &control.PeerEvent_Fenced{Fenced: &control.Fenced{Current: control.FenceProto(to.Fence)}}})
	if restart := hear[*wire.Restart](ada); restart.Node != "sfu-2" || restart.Epoch != firstEpoch+5 {
		t.Fatalf("restart %+v", restart)
	}
	r.placer.mu.Lock()
	defer r.placer.mu.Unlock()
	if len(r.placer.seen) == 0 || r.placer.seen[0] != to.Fence {
		t.Errorf("observed %v, want %v", r.placer.seen, to.Fence)
	}
}

// TestEventsOfALowerFenceAreDropped has a node say something it had under way when
// the room got a new pin.
func TestEventsOfALowerFenceAreDropped(t *testing.T) {
	r := newRig(t)
	n := r.node("sfu-1")
	r.placer.set("lobby", n.pin(firstEpoch))
	ada, _ := r.signalingNode(nil).join("lobby", "Ada")
	speakers := func(level float32) *control.PeerEvent {
		return &control.PeerEvent{Event: &control.PeerEvent_Speakers{Speakers: &control.Speakers{Speakers: []*control.Speaker{{Peer: "p", Level: level}}}}}
	}
	n.say("Ada", pin.Fence{Epoch: firstEpoch - 1, Nonce: 9}, speakers(0.25))
	n.say("Ada", n.pin(firstEpoch).Fence, speakers(0.5))
	if m := hear[*wire.Speakers](ada); m.Speakers[0].Level != 0.5 {
		t.Fatalf("heard %+v", m)
	}
}

// TestResumeOnAnotherSignalingNode takes a session from one signaling node to another.
func TestResumeOnAnotherSignalingNode(t *testing.T) {
	r := newRig(t)
	n, two := r.node("sfu-1"), r.node("sfu-2")
	r.placer.set("lobby", n.pin(firstEpoch))
	first, second := r.signalingNode(nil), r.signalingNode(nil)
	old, joined := first.join("lobby", "Ada")
	old.offer("o-1", true)
	hear[*wire.Answer](old)

	ada := second.dial()
	ada.say(&wire.Resume{Resume: joined.Resume, Attempt: 2, Epoch: joined.Epoch + 1000, Seq: joined.Seq})
	resumed := hear[*wire.Resumed](ada)
	// The fence that placement is told of is the one in the token, not the one that the client says.
	if r.placer.mu.Lock(); len(r.placer.seen) != 1 || r.placer.seen[0] != (pin.Fence{Epoch: firstEpoch}) {
		t.Errorf("observed %v", r.placer.seen)
	}
	r.placer.mu.Unlock()
	if !resumed.MediaAlive || resumed.Node != "sfu-1" || resumed.Epoch != firstEpoch || len(resumed.Roster) != 1 || resumed.Roster[0].Peer != joined.Peer {
		t.Fatalf("resumed %+v", resumed)
	}
	code, heard := old.closed()
	if bye, ok := heard[len(heard)-1].(*wire.Bye); !ok || bye.Code != wire.CodeSuperseded || code != websocket.StatusNormalClosure {
		t.Fatalf("the old socket heard %+v and closed with %v", heard[len(heard)-1], code)
	}
	// An attempt that came late is no attempt.
	late := first.dial()
	late.say(&wire.Resume{Resume: joined.Resume, Attempt: 2})
	if fault := hear[*wire.Error](late); fault.Code != wire.CodeSuperseded || fault.Retryable {
		t.Fatalf("heard %+v", fault)
	}
	// While nobody holds the socket the room moves: the media is not alive, and the peer is the same.
	_ = ada.conn.CloseNow()
	r.placer.set("lobby", two.pin(firstEpoch+1))
	ada = first.dial()
	ada.say(&wire.Resume{Resume: resumed.Resume, Attempt: 3})
	if m := hear[*wire.Resumed](ada); m.MediaAlive || m.Node != "sfu-2" || m.Roster[0].Peer != joined.Peer {
		t.Fatalf("resumed %+v", m)
	}
}

// TestAStoppingSignalingNodeSendsItsClientsOn stops one signaling node; the client resumes on another.
func TestAStoppingSignalingNodeSendsItsClientsOn(t *testing.T) {
	r := newRig(t)
	n := r.node("sfu-1")
	r.placer.set("lobby", n.pin(firstEpoch))
	first, second := r.signalingNode(nil), r.signalingNode(nil)
	old, joined := first.join("lobby", "Ada")
	old.offer("o-1", true)
	hear[*wire.Answer](old)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		first.stop()
	}()
	if code, _ := old.closed(); code != websocket.StatusServiceRestart {
		t.Fatalf("closed with %v", code)
	}
	<-stopped
	ada := second.dial()
	ada.say(&wire.Resume{Resume: joined.Resume, Attempt: 2})
	if m := hear[*wire.Resumed](ada); !m.MediaAlive {
		t.Fatalf("resumed %+v", m)
	}
}

// TestANewPinOfTheSameNodeIsNoRestart: the node holds the room by a higher pin, and media flows.
func TestANewPinOfTheSameNodeIsNoRestart(t *testing.T) {
	_, n, e := lobby(t)
	ada, _ := e.join("lobby", "Ada")
	ada.offer("o-1", true)
	hear[*wire.Answer](ada)
	e.Hub().Moved(context.Background(), "lobby", n.pin(firstEpoch+1))
	if m := hear[*wire.Slots](ada); m.Epoch != firstEpoch+1 {
		t.Fatalf("slots %+v", m)
	}
	ada.say(&wire.Ping{T: 3})
	hear[*wire.Pong](ada)
}

// TestALateJoinerBringsNewsOfTheRoom joins through a signaling node that has not heard of the move.
func TestALateJoinerBringsNewsOfTheRoom(t *testing.T) {
	r, _, two, e := lobbyAndSpare(t)
	ada, _ := e.join("lobby", "Ada")
	r.placer.set("lobby", two.pin(firstEpoch+1)) // another signaling node moved it
	if _, joined := e.join("lobby", "Grace"); joined.Node != "sfu-2" {
		t.Fatalf("joined %+v", joined)
	}
	if restart := hear[*wire.Restart](ada); restart.Node != "sfu-2" {
		t.Fatalf("restart %+v", restart)
	}
}

// TestASilentNodeIsNeverLeft freezes a node: the signaling node keeps trying it, asks where the room
// is, and moves nothing by itself.
func TestASilentNodeIsNeverLeft(t *testing.T) {
	_, n, e := lobby(t)
	ada, _ := e.join("lobby", "Ada")
	ada.offer("o-1", true)
	hear[*wire.Answer](ada)
	n.set(func() {
		n.refuse = func(*control.Attach) *control.Refused {
			return &control.Refused{Code: control.Refusal_REFUSAL_UNCONFIRMED}
		}
	})
	n.breakLinks()
	testkit.Eventually(t, "many tries", func() bool { return len(n.attached()) > 6 })
	ada.offer("o-2", false) // is kept until the node answers again
	n.set(func() { n.refuse = nil })
	hear[*wire.Slots](ada)
	if a := hear[*wire.Answer](ada); a.ID != "o-2" || a.Node != "sfu-1" || a.Epoch != firstEpoch {
		t.Fatalf("answer %+v", a)
	}
}

// TestASignalingNodeReachesADeadNodesRoomByItself: the node dies and nobody tells the hub; the pin
// heals in the store, and the session finds it by asking.
func TestASignalingNodeReachesADeadNodesRoomByItself(t *testing.T) {
	r := newRig(t)
	one, two := r.node("sfu-1"), r.node("sfu-2")
	r.placer.set("lobby", one.pin(firstEpoch))
	ada, _ := r.signalingNode(nil).join("lobby", "Ada")
	r.placer.set("lobby", two.pin(firstEpoch+1))
	one.stop()
	if restart := hear[*wire.Restart](ada); restart.Node != "sfu-2" {
		t.Fatalf("restart %+v", restart)
	}
}

// TestAJoinerBehindTheRoomIsSentOn joins under a pin that this signaling node knows to be outranked.
func TestAJoinerBehindTheRoomIsSentOn(t *testing.T) {
	r := newRig(t)
	one, two := r.node("sfu-1"), r.node("sfu-2")
	r.placer.set("lobby", two.pin(firstEpoch+1))
	e := r.signalingNode(nil)
	e.join("lobby", "Ada")
	r.placer.set("lobby", one.pin(firstEpoch)) // a store that lost its latest write
	grace, joined := e.join("lobby", "Grace")
	if joined.Node != "sfu-1" {
		t.Fatalf("joined %+v", joined)
	}
	if restart := hear[*wire.Restart](grace); restart.Node != "sfu-2" {
		t.Fatalf("restart %+v", restart)
	}
}

// TestAnOfferOfTheOldNodeStaysThere: an offer that the dead node never answered is not said to
// the new one, because the client makes another.
func TestAnOfferOfTheOldNodeStaysThere(t *testing.T) {
	r := newRig(t)
	one, two := r.node("sfu-1"), r.node("sfu-2")
	r.placer.set("lobby", one.pin(firstEpoch))
	one.set(func() { one.silent = true })
	e := r.signalingNode(nil)
	ada, _ := e.join("lobby", "Ada")
	ada.offer("o-1", true)
	testkit.Eventually(t, "offer", func() bool { return one.said() != "" })
	r.placer.set("lobby", two.pin(firstEpoch+1))
	e.Hub().Moved(context.Background(), "lobby", two.pin(firstEpoch+1))
	hear[*wire.Restart](ada)
	ada.offer("o-2", true)
	hear[*wire.Answer](ada)
	if said := two.said(); said != "Ada offers o-2 fresh=true slots=0" {
		t.Fatalf("the new node heard %q", said)
	}
}
