package signaling

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/limits"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// A room that its new node refuses is placed again as what the node judged, and its people hear once, of the node that took
// them.
func TestARefusedRoomIsPlacedAgainAsItWasJudged(t *testing.T) {
	r := newRig(t)
	one, two, three, four := r.node("sfu-1"), r.node("sfu-2"), r.node("sfu-3"), r.node("sfu-4")
	r.placer.set("lobby", one.pin(firstEpoch))
	r.placer.again = func(refused pin.Pin) (pin.Pin, error) {
		if refused.Node == "sfu-2" {
			return three.pin(refused.Fence.Epoch + 1), nil
		}
		return four.pin(refused.Fence.Epoch + 1), nil
	}
	for _, n := range []*node{two, three} {
		n.set(func() {
			n.refuse = func(*control.Attach) *control.Refused {
				return &control.Refused{Code: control.Refusal_REFUSAL_NO_HEADROOM}
			}
		})
	}
	e := r.signalingNode(nil)
	ada, _ := e.join("lobby", "Ada")
	grace, _ := e.join("lobby", "Grace")
	hear[*wire.PeerJoined](ada)
	r.placer.set("lobby", two.pin(firstEpoch+1))
	e.Hub().Moved(context.Background(), "lobby", two.pin(firstEpoch+1))
	for _, c := range []*client{ada, grace} {
		if restart := hear[*wire.Restart](c); restart.Node != "sfu-4" {
			t.Errorf("told of %s, which refused", restart.Node)
		}
		c.offer("o-2", false)
		for answered := false; !answered; {
			switch m := c.next().(type) {
			case *wire.Restart:
				t.Fatalf("restart %+v", m)
			case *wire.Answer:
				if answered = true; m.Node != "sfu-4" || m.ID != "o-2" {
					t.Fatalf("answer %+v", m)
				}
			}
		}
	}
	want := headroom.Expect(2)
	want.Running = true
	r.placer.mu.Lock()
	defer r.placer.mu.Unlock()
	if len(r.placer.expects) < 2 {
		t.Fatalf("placed again %d times", len(r.placer.expects))
	}
	for _, got := range r.placer.expects {
		if got != want {
			t.Errorf("placed again as %+v, want %+v", got, want)
		}
	}
	for _, a := range two.attached() {
		if got := a.GetExpectedEgress().Value(); got != want.Cost() {
			t.Errorf("the node judged %v, placement %v", got, want.Cost())
		}
	}
}

// What people have on, and then what the owner measured, is what the room is re-homed by.
func TestTheHubKnowsWhatARoomCosts(t *testing.T) {
	_, n, e := lobby(t)
	e.join("lobby", "Ada")
	e.join("lobby", "Grace")
	known := func(want headroom.Room) func() bool {
		return func() bool {
			rooms := e.Hub().PinnedTo(n.boot)
			return len(rooms) == 1 && rooms[0].Expect == want
		}
	}
	two := headroom.Expect(2)
	two.Running = true
	testkit.Eventually(t, "two people", known(two))
	sent := headroom.Egress{BitsPerSecond: 90_000, PacketsPerSecond: 120}
	for _, name := range []string{"Ada", "Grace"} {
		n.say(name, n.pin(firstEpoch).Fence, &control.PeerEvent{Event: &control.PeerEvent_Egress{Egress: control.EgressProto(sent)}})
	}
	testkit.Eventually(t, "what is sent", known(headroom.Room{People: 2, Cameras: 2, Microphones: 2, Measured: true, Sent: sent, Running: true}))
}

// Somebody who opens room after room, with a token for any, reserves egress for a few of them, whatever size the token claims.
func TestOneIdentityReservesForFewRooms(t *testing.T) {
	r := newRig(t)
	n := r.node("sfu-1")
	e := r.signalingNode(func(c *Config) { c.Limits.Openings.PerSecond = 1e-9 })
	grant := access.Everything("mallory", "")
	grant.ExpectedSize = 300
	token, err := r.keys.Mint(apiKey, grant, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		room := fmt.Sprintf("mine-%d", i)
		r.placer.set(pinRoom(room), n.pin(firstEpoch))
		c := e.dial()
		c.say(&wire.Join{Token: token, Room: room})
		hear[*wire.Joined](c)
	}
	r.placer.set("lobby", n.pin(firstEpoch))
	e.join("lobby", "Ada")
	reserved := 0
	for _, a := range n.attached() {
		if a.GetPeer().GetIdentity() == "ada" && a.GetUnreserved() {
			t.Error("an honest room is not reserved for")
		}
		if a.GetPeer().GetIdentity() == "mallory" && !a.GetUnreserved() {
			reserved++
		}
		if got := a.GetExpectedEgress().Value(); got != (headroom.Room{}).Cost() {
			t.Errorf("a token for any room claims %v", got)
		}
	}
	if want := limits.DefaultConfig().Openings.Burst; reserved != want {
		t.Errorf("one identity reserves for %d rooms, want %d", reserved, want)
	}
}

func TestATokenSaysHowManyPeopleItsRoomExpects(t *testing.T) {
	r := newRig(t)
	n := r.node("sfu-1")
	r.placer.set("class", n.pin(firstEpoch))
	e := r.signalingNode(nil)
	grant := access.Everything("ada", "class")
	grant.ExpectedSize = 40
	token, err := r.keys.Mint(apiKey, grant, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	c := e.dial()
	c.say(&wire.Join{Token: token})
	hear[*wire.Joined](c)
	if a := n.attached()[0]; a.GetExpectedSize() != 40 || a.GetExpectedEgress().Value() != headroom.Expect(40).Cost() {
		t.Errorf("attached with %d people and %v", a.GetExpectedSize(), a.GetExpectedEgress())
	}
}

// Nobody has headroom for the room of a node that died: its people are told at once, and of other delays they are not.
func TestPeopleAreToldThatNobodyHasHeadroom(t *testing.T) {
	_, _, e := lobby(t)
	ada, _ := e.join("lobby", "Ada")
	e.Hub().Delayed("lobby", orchestrator.ErrStoreUnavailable)
	e.Hub().Delayed("lobby", fmt.Errorf("place room lobby: %w", &orchestrator.NoHeadroomError{}))
	if told := hear[*wire.Error](ada); told.Code != wire.CodeNoCapacity || !told.Retryable || told.Message == "" {
		t.Errorf("told %+v", told)
	}
}

// TestPeopleAreToldThatNobodyTakesTheirRoom: the node that a live move led to refused it, and no other has headroom.
func TestPeopleAreToldThatNobodyTakesTheirRoom(t *testing.T) {
	r, _, two, e := lobbyAndSpare(t)
	r.placer.again = func(pin.Pin) (pin.Pin, error) { return pin.Pin{}, &orchestrator.NoHeadroomError{} }
	two.set(func() {
		two.refuse = func(*control.Attach) *control.Refused {
			return &control.Refused{Code: control.Refusal_REFUSAL_NO_HEADROOM}
		}
	})
	ada, _ := e.join("lobby", "Ada")
	r.placer.set("lobby", two.pin(firstEpoch+1))
	e.Hub().MovedLive(t.Context(), "lobby", two.pin(firstEpoch+1))
	testkit.Eventually(t, "some attempts", func() bool { return len(two.attached()) >= 5 })
	two.set(func() { two.refuse = nil })
	told := 0
	for {
		switch m := ada.next().(type) {
		case *wire.Error:
			if told++; m.Code != wire.CodeNoCapacity || !m.Retryable {
				t.Errorf("told %+v", m)
			}
		case *wire.Restart:
			if told != 1 {
				t.Errorf("told %d times, want once", told)
			}
			return
		}
	}
}

// A node near its ceiling holds pictures back: clients are told when that changes, and whoever joins meanwhile.
func TestPeopleAreToldThatPicturesAreHeldBack(t *testing.T) {
	_, n, e := lobby(t)
	ada, _ := e.join("lobby", "Ada")
	say := func(limited bool) {
		n.say("Ada", n.pin(firstEpoch).Fence, &control.PeerEvent{Event: &control.PeerEvent_Limited{Limited: &control.Limited{Limited: limited}}})
	}
	for _, limited := range []bool{true, false} {
		say(limited)
		say(limited)
		if told := hear[*wire.Limited](ada); told.Limited != limited || told.Epoch != firstEpoch {
			t.Errorf("told %+v, want %v", told, limited)
		}
	}
}
