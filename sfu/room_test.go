package sfu

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
)

func TestRosterFollowsWhoIsThere(t *testing.T) {
	s := newStage(t, "one")
	alice, first := s.attach("room", "alice", 1)
	if got := rosterIDs(first.GetRoster()); got != "alice " {
		t.Errorf("alice sees %q", got)
	}
	bob, second := s.attach("room", "bob", 1, func(a *control.Attach) {
		a.Peer.Metadata, a.Peer.Attributes = "seven", map[string]string{"team": "blue"}
	})
	if got := rosterIDs(second.GetRoster()); got != "alice bob " {
		t.Errorf("bob sees %q", got)
	}
	joined := alice.await("bob's join", func(e *control.PeerEvent) bool { return e.GetRosterChange().GetJoined().GetId() == "bob" })
	bob.send(&control.PeerMessage{Message: &control.PeerMessage_Mute{Mute: &control.Mute{Source: control.Source_SOURCE_MICROPHONE, Muted: true}}})
	muted := alice.await("bob's mute", func(e *control.PeerEvent) bool { return e.GetRosterChange().GetUpdated().GetAudioMuted() })
	for _, told := range []*control.Peer{joined.GetRosterChange().GetJoined(), muted.GetRosterChange().GetUpdated()} {
		if told.GetMetadata() != "seven" || told.GetAttributes()["team"] != "blue" {
			t.Errorf("alice is told %v of bob", told)
		}
	}
	if muted.GetSeq() != joined.GetSeq()+1 {
		t.Errorf("roster events are numbered %d, %d", joined.GetSeq(), muted.GetSeq())
	}
	bob.send(&control.PeerMessage{Message: &control.PeerMessage_Mute{Mute: &control.Mute{Source: control.Source_SOURCE_SCREEN, Muted: false}}})
	alice.await("bob's screen", func(e *control.PeerEvent) bool { return e.GetRosterChange().GetUpdated().GetScreenShared() })
	bob.send(&control.PeerMessage{Message: &control.PeerMessage_Leave{Leave: &control.Leave{}}})
	alice.await("bob's leave", func(e *control.PeerEvent) bool { return e.GetRosterChange().GetLeft() == "bob" })
	bob.awaitEnd()
}

func TestANewNameIsTold(t *testing.T) {
	s := newStage(t, "one")
	alice, _ := s.attach("room", "alice", 1)
	bob, _ := s.attach("room", "bob", 1)
	for _, name := range []string{"", strings.Repeat("x", maxNameBytes+1), "Robert"} {
		bob.send(&control.PeerMessage{Message: &control.PeerMessage_Rename{Rename: &control.Rename{Name: name}}})
	}
	updated := alice.await("bob's name", func(e *control.PeerEvent) bool { return e.GetRosterChange().GetUpdated() != nil })
	if got := updated.GetRosterChange().GetUpdated(); got.GetId() != "bob" || got.GetName() != "Robert" {
		t.Errorf("alice is told %v", got)
	}
	if _, sees := s.attach("room", "carol", 1); sees.GetRoster()[1].GetName() != "Robert" {
		t.Errorf("carol sees %v", sees.GetRoster())
	}
}

func TestAHiddenPeerIsSeenByNobody(t *testing.T) {
	s := newStage(t, "one")
	alice, _ := s.attach("room", "alice", 1)
	hidden := func(a *control.Attach) { a.Peer.Hidden = true }
	spy, sees := s.attach("room", "spy", 1, hidden)
	if got := rosterIDs(sees.GetRoster()); got != "alice spy " {
		t.Errorf("the hidden one sees %q", got)
	}
	other, sees := s.attach("room", "other-spy", 1, hidden, func(a *control.Attach) {
		a.Expected = []*control.Peer{{Id: "ghost", Identity: "ghost", Hidden: true}}
	})
	if got := rosterIDs(sees.GetRoster()); got != "alice other-spy " {
		t.Errorf("another hidden one sees %q", got)
	}
	spy.send(&control.PeerMessage{Message: &control.PeerMessage_Say{Say: &control.Say{Text: "boo"}}})
	spy.send(&control.PeerMessage{Message: &control.PeerMessage_Mute{Mute: &control.Mute{Source: control.Source_SOURCE_MICROPHONE, Muted: true}}})
	spy.await("its own mute", func(e *control.PeerEvent) bool { return e.GetRosterChange().GetUpdated().GetId() == "spy" })
	spy.send(&control.PeerMessage{Message: &control.PeerMessage_Leave{Leave: &control.Leave{}}})
	spy.awaitEnd()
	bob, sees := s.attach("room", "bob", 1)
	if got := rosterIDs(sees.GetRoster()); got != "alice bob " {
		t.Errorf("bob sees %q", got)
	}
	var heard []*control.PeerEvent
	alice.await("bob's join", func(e *control.PeerEvent) bool {
		heard = append(heard, e)
		return e.GetRosterChange().GetJoined().GetId() == "bob"
	})
	for _, e := range heard[:len(heard)-1] {
		if e.GetRosterChange() != nil || e.GetChat() != nil {
			t.Errorf("alice heard %v", e)
		}
	}
	other.await("bob's join", func(e *control.PeerEvent) bool { return e.GetRosterChange().GetJoined().GetId() == "bob" })
	bob.send(&control.PeerMessage{Message: &control.PeerMessage_Leave{Leave: &control.Leave{}}})
	if held := s.heldPeer("room", "other-spy"); held == nil {
		t.Error("operators do not see the hidden one")
	}
}

func TestExpectedPeersDoNotFlicker(t *testing.T) {
	t.Parallel() // it waits for the grace time to run out, in which a busy machine must attach two
	s := newStage(t, "one", func(c *Config) { c.Grace = 4 * time.Second })
	expecting := func(a *control.Attach) {
		a.Expected = []*control.Peer{{Id: "bob", Identity: "bob", Name: "bob"}, {Id: "carol", Identity: "carol", Name: "carol"}}
	}
	alice, first := s.attach("room", "alice", 3, expecting)
	if got := rosterIDs(first.GetRoster()); got != "alice bob carol " {
		t.Errorf("alice sees %q", got)
	}
	if held := s.heldPeer("room", "bob"); held != nil {
		t.Error("an expected peer is said to be held")
	}
	s.attach("room", "bob", 5)
	// Bob's arrival was no news; Carol's absence is, when the time has run out.
	event := alice.await("a roster change", func(e *control.PeerEvent) bool { return e.GetRosterChange() != nil })
	if event.GetRosterChange().GetLeft() != "carol" {
		t.Errorf("alice was told %v", event)
	}
	// A room that is older than the grace time expects nobody.
	_, dave := s.attach("room", "dave", 1, expecting)
	if got := rosterIDs(dave.GetRoster()); got != "alice bob dave " {
		t.Errorf("dave sees %q", got)
	}
}

// TestARosterThatIsKnownIsNotToldAgain spares each of a large room's people the roster of all.
func TestARosterThatIsKnownIsNotToldAgain(t *testing.T) {
	s := newStage(t, "one")
	attributes := map[string]string{"team": "blue", "seat": "7", "role": "host"}
	people := []*control.Peer{{Id: "alice", Identity: "alice", Name: "alice"}, {Id: "bob", Identity: "bob", Name: "bob", Metadata: "seven", Attributes: attributes}}
	knowing := func(a *control.Attach) { a.KnownRoster = control.RosterDigest(people) }
	_, first := s.attach("room", "alice", 1, knowing)
	if first.GetRosterKnown() || rosterIDs(first.GetRoster()) != "alice " {
		t.Errorf("alice, who knew of bob, was told %v", first)
	}
	bob, second := s.attach("room", "bob", 1, knowing, func(a *control.Attach) { a.Peer.Metadata, a.Peer.Attributes = "seven", attributes })
	if !second.GetRosterKnown() || len(second.GetRoster()) > 0 {
		t.Errorf("bob, who knew the roster, was told %v", second)
	}
	s.attach("room", "carol", 1)
	bob.await("carol's join", func(e *control.PeerEvent) bool { return e.GetRosterChange().GetJoined().GetId() == "carol" })
	_, again := s.attach("room", "alice", 2, knowing)
	if again.GetRosterKnown() || rosterIDs(again.GetRoster()) != "alice bob carol " {
		t.Errorf("alice, who did not know of carol, was told %v", again)
	}
	spy := func(a *control.Attach) { a.Peer.Hidden, a.KnownRoster = true, control.RosterDigest(again.GetRoster()) }
	if _, hidden := s.attach("room", "spy", 1, spy); hidden.GetRosterKnown() {
		t.Error("the hidden one was not told of itself")
	}
}

func TestGraceKeepsAPeerWithoutASignalingNode(t *testing.T) {
	t.Parallel() // it waits for the grace time to run out, in which a busy machine must attach somebody again
	s := newStage(t, "one", func(c *Config) { c.Grace = 4 * time.Second })
	alice, _ := s.attach("room", "alice", 1)
	bob, _ := s.attach("room", "bob", 1)
	bob.cancel()
	eventually(t, "bob is detached", func() bool { p := s.heldPeer("room", "bob"); return p != nil && !p.GetAttached() })
	again, attached := s.attach("room", "bob", 2)
	if attached.GetResumed() {
		t.Error("a peer without a connection was resumed")
	}
	again.cancel()
	alice.await("bob's leave", func(e *control.PeerEvent) bool { return e.GetRosterChange().GetLeft() == "bob" })
	alice.send(&control.PeerMessage{Message: &control.PeerMessage_Leave{Leave: &control.Leave{}}})
	eventually(t, "the empty room closes", func() bool { return len(s.node.Held()) == 0 })
}

func TestANewerSignalingNodeFencesTheOld(t *testing.T) {
	s := newStage(t, "one")
	old, _ := s.attach("room", "alice", 4)
	s.attach("room", "alice", 5)
	if last := old.awaitEnd(); last.GetClosed() == nil {
		t.Errorf("the old stream's last event is %v, want Closed", last)
	}
	for _, generation := range []uint64{4, 5} {
		if got := s.refusal(s.attachMessage(s.pin(s.epoch), "room", "alice", generation)); got.GetCode() != control.Refusal_REFUSAL_STALE_GENERATION {
			t.Errorf("generation %d: %v", generation, got)
		}
	}
}

func TestFences(t *testing.T) {
	s := newStage(t, "one")
	alice, _ := s.attach("room", "alice", 1)
	other := s.pin(s.epoch)
	other.Node = "other"
	boot := s.pin(s.epoch)
	boot.Boot = "1769000000001-one"
	for _, c := range []struct {
		name string
		pin  pin.Pin
		want control.Refusal
	}{
		{"a lower epoch", s.pin(s.epoch - 1), control.Refusal_REFUSAL_FENCED},
		{"another node", other, control.Refusal_REFUSAL_WRONG_BOOT},
		{"another boot", boot, control.Refusal_REFUSAL_WRONG_BOOT},
		{"no pin", pin.Pin{}, control.Refusal_REFUSAL_BAD_REQUEST},
	} {
		got := s.refusal(s.attachMessage(c.pin, "room", "bob", 1))
		if got.GetCode() != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
		if c.want == control.Refusal_REFUSAL_FENCED && got.GetCurrent().GetEpoch() != s.epoch {
			t.Errorf("%s: the current fence is said to be %v", c.name, got.GetCurrent())
		}
	}
	higher := s.pin(s.epoch + 1)
	bob := s.dial(s.attachMessage(higher, "room", "bob", 1))
	if got := bob.next(); got.GetAttached() == nil || got.GetFence().GetEpoch() != s.epoch+1 {
		t.Fatalf("a higher pin of this boot is not adopted: %v", got)
	}
	alice.send(&control.PeerMessage{Message: &control.PeerMessage_View{View: &control.View{}}})
	if last := alice.awaitEnd(); last.GetRefused().GetCode() != control.Refusal_REFUSAL_FENCED || last.GetRefused().GetCurrent().GetEpoch() != s.epoch+1 {
		t.Errorf("a message under the old fence got %v", last)
	}
	bob.send(&control.PeerMessage{Fence: &control.Fence{Epoch: s.epoch + 9, Nonce: 1}, Message: &control.PeerMessage_View{View: &control.View{}}})
	if last := bob.awaitEnd(); last.GetRefused().GetCode() != control.Refusal_REFUSAL_UNCONFIRMED {
		t.Errorf("a message under an unknown fence got %v", last)
	}
	if held := s.node.Held(); len(held) != 1 || held[0].Pin != higher {
		t.Errorf("held: %v, want %v", held, higher)
	}
}

// A newer signaling node's message costs this node nothing: the stream goes on.
func TestAMessageOfALaterVersionIsIgnored(t *testing.T) {
	s := newStage(t, "one")
	alice, _ := s.attach("room", "alice", 1)
	later := &control.PeerMessage{Fence: control.FenceProto(s.pin(s.epoch).Fence)}
	later.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 900, protowire.BytesType), []byte("?")))
	alice.send(later)
	alice.send(&control.PeerMessage{Message: &control.PeerMessage_Rename{Rename: &control.Rename{Name: "Alice II"}}})
	for {
		event := alice.next()
		if refused := event.GetRefused(); refused != nil {
			t.Fatalf("the stream ended: %v", refused)
		}
		if event.GetRosterChange().GetUpdated().GetName() == "Alice II" {
			return
		}
	}
}

func TestOutrankHandsTheRoomOver(t *testing.T) {
	s := newStage(t, "one")
	alice, _ := s.attach("room", "alice", 1)
	higher := s.pin(s.epoch + 1)
	higher.Node = "two"
	reply, err := s.client.Outrank(t.Context(), &control.OutrankRequest{Room: "room", Pin: control.PinProto(higher)})
	if err != nil || !reply.GetHeld() {
		t.Fatalf("Outrank = %v, %v", reply, err)
	}
	if last := alice.awaitEnd(); last.GetFenced().GetCurrent().GetEpoch() != s.epoch+1 {
		t.Errorf("alice's last event is %v, want Fenced", last)
	}
	if held := s.node.Held(); len(held) != 0 || len(s.rooms().GetRooms()) != 0 {
		t.Errorf("still held: %v", held)
	}
	for _, epoch := range []uint64{s.epoch, s.epoch + 1} {
		if got := s.refusal(s.attachMessage(s.pin(epoch), "room", "alice", 2)); got.GetCode() != control.Refusal_REFUSAL_FENCED || got.GetCurrent().GetEpoch() != s.epoch+1 {
			t.Errorf("epoch %d: %v, want fenced", epoch, got)
		}
	}
	s.epoch += 2
	s.attach("room", "alice", 3)
	if reply, err := s.client.Outrank(t.Context(), &control.OutrankRequest{Room: "room", Pin: control.PinProto(higher)}); err != nil || reply.GetHeld() {
		t.Errorf("a lower pin outranked the room: %v, %v", reply, err)
	}
}

func TestRefusals(t *testing.T) {
	recorder, facts := testkit.Recorded(t)
	s := newStage(t, "one", func(c *Config) {
		c.Events = recorder
		c.Limits.PeersPerRoom = 2
		c.CeilingBitsPerSecond = 4 * headroom.Expect(2).Cost().BitsPerSecond
		c.CeilingPacketsPerSecond = 1 << 40
	})
	sized := func(a *control.Attach) { a.ExpectedSize = 2 }
	_, first := s.attach("room", "alice", 1, sized)
	if next := s.node.NextReport(); first.GetChargedInReport() != next.Seq || next.EgressBitsPerSecond == 0 || next.Rooms != 1 || next.Peers != 1 {
		t.Errorf("the room is charged from report %d, the next one is %+v", first.GetChargedInReport(), next)
	}
	s.attach("room", "bob", 1)
	if got := s.refusal(s.attachMessage(s.pin(s.epoch), "room", "carol", 1)); got.GetCode() != control.Refusal_REFUSAL_ROOM_FULL {
		t.Errorf("a third of two: %v", got)
	}
	big := s.attachMessage(s.pin(s.epoch), "big", "carol", 1)
	big.GetAttach().ExpectedSize = 30
	if got := s.refusal(big); got.GetCode() != control.Refusal_REFUSAL_NO_HEADROOM {
		t.Errorf("a room over the ceiling: %v", got)
	}
	small := s.attachMessage(s.pin(s.epoch), "big", "carol", 1)
	small.GetAttach().ExpectedSize = 2
	if got := s.refusal(small); got.GetCode() != control.Refusal_REFUSAL_NO_HEADROOM {
		t.Errorf("a refusal is not final for its epoch: %v", got)
	}
	var reached []string
	for _, e := range facts() {
		if e.Kind == events.LimitReached {
			reached = append(reached, string(e.Room)+"@"+string(e.Node)+" "+e.About)
		}
	}
	slices.Sort(reached)
	if got := strings.Join(reached, ", "); got != "@one headroom, room@one people" {
		t.Errorf("the limits that were reached: %s", got)
	}
	s.node.StartDrain(Drain{})
	if got := s.refusal(s.attachMessage(s.pin(s.epoch), "third", "carol", 1)); got.GetCode() != control.Refusal_REFUSAL_DRAINING {
		t.Errorf("a room on a draining node: %v", got)
	}
	s.node.Undrain()
	fourth := s.attachMessage(s.pin(s.epoch), "fourth", "carol", 1)
	fourth.GetAttach().ExpectedSize = 2
	s.owner.say(pin.ErrUnconfirmed)
	if got := s.refusal(fourth); got.GetCode() != control.Refusal_REFUSAL_UNCONFIRMED {
		t.Errorf("an unconfirmed pin: %v", got)
	}
	s.owner.say(&pin.FencedError{Room: "fourth", Current: s.pin(s.epoch + 5)})
	if got := s.refusal(fourth); got.GetCode() != control.Refusal_REFUSAL_FENCED || got.GetCurrent().GetEpoch() != s.epoch+5 {
		t.Errorf("a fenced pin: %v", got)
	}
	// Who is in the room needs no confirmation to come back.
	s.owner.say(errors.New("the store is away"))
	s.attach("room", "alice", 2)
}

func TestStoppingANodeEndsItsStreams(t *testing.T) {
	s := newStage(t, "one")
	alice, _ := s.attach("room", "alice", 1)
	watch, err := s.client.Watch(t.Context(), &control.WatchRequest{SignalingNode: "signaling-1"})
	if err != nil {
		t.Fatal(err)
	}
	heartbeat, err := watch.Recv()
	if err != nil {
		t.Fatal(err)
	}
	if hello, err := heartbeat.Value(); err != nil || hello.Node != "one" || hello.Media != s.node.MediaAddress().String() {
		t.Errorf("the first heartbeat is %v, %v", heartbeat, err)
	}
	asks, err := s.client.Watch(t.Context(), &control.WatchRequest{}) // It only asks who lives here.
	if err != nil {
		t.Fatal(err)
	}
	if _, err := asks.Recv(); err != nil || s.node.Watchers() != 1 {
		t.Errorf("%d signaling nodes are said to watch, want 1 (%v)", s.node.Watchers(), err)
	}
	s.stop()
	alice.awaitEnd()
	if _, err := watch.Recv(); err == nil {
		t.Error("the node still sends heartbeats")
	}
}

func TestLiveMove(t *testing.T) {
	// The former node: it says where the room is, and goes on forwarding while somebody is connected.
	s := newStage(t, "one")
	alice, _ := s.attach("room", "alice", 1)
	higher := s.pin(s.epoch + 1)
	higher.Node = "two"
	if _, err := s.client.Outrank(t.Context(), &control.OutrankRequest{Room: "room", Pin: control.PinProto(higher), Live: true}); err != nil {
		t.Fatal(err)
	}
	last := alice.awaitEnd().GetFenced()
	if to, err := last.GetPin().Value(); err != nil || to != higher || !last.GetLive() {
		t.Errorf("alice is told %v, want the new pin, live", last)
	}

	// The new one: settled when everybody who came along has arrived, and only then. Who is new is not waited for.
	n := newStage(t, "two")
	came := func(a *control.Attach) {
		a.Expected = []*control.Peer{{Id: "alice"}, {Id: "bob"}}
	}
	alice, _ = n.attach("room", "alice", 2, came)
	carol, _ := n.attach("room", "carol", 1)
	arrive := func(c *attachStream) {
		c.send(&control.PeerMessage{Message: &control.PeerMessage_Arrived{Arrived: &control.Arrived{}}})
	}
	arrive(alice)
	alice.send(&control.PeerMessage{Message: &control.PeerMessage_Rename{Rename: &control.Rename{Name: "Ada"}}})
	got := carol.await("the new name", func(e *control.PeerEvent) bool {
		return e.GetSettled() != nil || e.GetRosterChange().GetUpdated().GetName() == "Ada"
	})
	if got.GetSettled() != nil {
		t.Error("settled while bob is on his way")
	}
	bob, _ := n.attach("room", "bob", 2)
	arrive(bob)
	for _, c := range []*attachStream{alice, bob, carol} {
		c.await("settled", func(e *control.PeerEvent) bool { return e.GetSettled() != nil })
	}
	arrive(carol) // Who asks later is answered at once.
	carol.await("settled", func(e *control.PeerEvent) bool { return e.GetSettled() != nil })
}

// An attach that only asks for a peer who is here changes nothing where it is not: no room opens, nobody is in the roster, and no pin
// is confirmed. Who is in the room, or expected there, attaches.
func TestAnAttachOnlyOfWhoIsHere(t *testing.T) {
	s := newStage(t, "sfu-1")
	onlyHere := func(a *control.Attach) { a.OnlyIfHere = true }
	refused := func(room string) {
		t.Helper()
		message := s.attachMessage(s.pin(s.epoch), room, "bob", 1)
		onlyHere(message.GetAttach())
		if got := s.refusal(message); got.GetCode() != control.Refusal_REFUSAL_NOT_HERE {
			t.Errorf("bob in %s is refused with %v", room, got)
		}
	}
	s.owner.say(errors.New("the store is silent"))
	refused("room")
	if rooms := s.rooms().GetRooms(); len(rooms) != 0 {
		t.Errorf("open are %v", rooms)
	}
	s.owner.say(nil)
	alice, _ := s.attach("room", "alice", 1)
	s.owner.say(errors.New("the store is silent"))
	refused("room")
	if s.heldPeer("room", "bob") != nil {
		t.Error("bob is in the room")
	}
	alice.send(&control.PeerMessage{Message: &control.PeerMessage_Leave{Leave: &control.Leave{}}})
	alice.awaitEnd()
	refused("room") // bob still, in an empty room

	s.owner.say(nil)
	s.attach("moved", "alice", 1, func(a *control.Attach) { a.Expected = []*control.Peer{{Id: "bob", Identity: "bob"}} })
	if _, attached := s.attach("moved", "bob", 1, onlyHere); !attached.GetWasHere() || attached.GetResumed() {
		t.Errorf("bob, who is expected, gets %v", attached)
	}
	s.owner.say(errors.New("the store is silent"))
	if _, attached := s.attach("moved", "bob", 2, onlyHere); !attached.GetWasHere() {
		t.Errorf("bob, who is in the room, gets %v", attached)
	}
}
