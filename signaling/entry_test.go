package signaling

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/orchestrator"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

func TestJoinOfferMuteViewAndLeave(t *testing.T) {
	r := newRig(t)
	n := r.node("sfu-1")
	r.placer.set("lobby {1}", n.pin(firstEpoch))
	e := r.signalingNode(nil)
	ada, joined := e.join("lobby {1}", "Ada")
	if joined.Protocol != 1 || joined.Room != "lobby {1}" || joined.Identity != "ada" || joined.Node != "sfu-1" ||
		joined.Epoch != firstEpoch || joined.Seq != 1 || len(joined.Roster) != 1 || joined.Roster[0].Peer != joined.Peer ||
		!reflect.DeepEqual(joined.Permissions, wire.Permissions{Publish: true, Subscribe: true, Chat: true, Message: wire.ScopeRoom}) || joined.Resume == "" {
		t.Fatalf("joined %+v", joined)
	}
	grace, _ := e.join("lobby {1}", "Grace")
	if who := hear[*wire.PeerJoined](ada); who.Peer.Name != "Grace" || who.Epoch != firstEpoch || who.Seq != 2 {
		t.Fatalf("heard %+v", who)
	}
	ada.offer("o-1", true)
	if a := hear[*wire.Answer](ada); a.ID != "o-1" || a.SDP != "answer of sfu-1 to offer o-1" || a.Epoch != firstEpoch || a.Node != "sfu-1" {
		t.Fatalf("answer %+v", a)
	}
	n.say("Ada", n.pin(firstEpoch).Fence, &control.PeerEvent{Event: &control.PeerEvent_Slots{Slots: &control.SlotTable{
		Slots: []*control.Slot{{Mid: "2", Kind: control.Kind_KIND_VIDEO, Peer: "p-9", Source: control.Source_SOURCE_CAMERA}},
	}}})
	if m := hear[*wire.Slots](ada); len(m.Slots) != 1 || m.Slots[0] != (wire.Slot{Mid: "2", Kind: wire.KindVideo, Peer: "p-9", Source: wire.SourceCamera}) {
		t.Fatalf("slots %+v", m)
	}
	ada.offer("o-2", false)
	hear[*wire.Answer](ada)
	ada.say(&wire.Mute{Source: wire.SourceScreen, Muted: true})
	ada.say(&wire.View{Wants: wire.List[wire.Want]{{Peer: "p", Source: wire.SourceCamera, Width: 1, Height: 1}}})
	ada.say(&wire.Ping{T: 1.5})
	if pong := hear[*wire.Pong](ada); pong.T != 1.5 {
		t.Fatalf("pong %+v", pong)
	}
	ada.say(&wire.Leave{})
	if code, _ := ada.closed(); code != websocket.StatusNormalClosure {
		t.Fatalf("closed with %v", code)
	}
	testkit.Eventually(t, "word of all that", func() bool {
		return n.said() == "Ada offers o-1 fresh=true slots=0\nAda offers o-2 fresh=false slots=1\nAda mutes SOURCE_SCREEN true\nAda views 1\nAda leaves"
	})
	// A socket that dies without a leave is no leave.
	_ = grace.conn.CloseNow()
	testkit.Eventually(t, "end of the session", func() bool { return len(e.Hub().PinnedTo(n.boot)) == 0 })
	if n.mu.Lock(); len(n.peers) != 1 {
		t.Errorf("the node has %d peers, want Grace alone", len(n.peers))
	}
	n.mu.Unlock()
}

func TestRefusedJoins(t *testing.T) {
	r := newRig(t)
	n := r.node("sfu-1")
	for _, room := range []string{"lobby", "full", "mine"} {
		r.placer.set(pinRoom(room), n.pin(firstEpoch))
	}
	n.set(func() {
		n.refuse = func(a *control.Attach) *control.Refused {
			if a.GetRoom() == "full" {
				return &control.Refused{Code: control.Refusal_REFUSAL_ROOM_FULL}
			}
			return nil
		}
	})
	e := r.signalingNode(nil)
	mint := func(change func(*access.Grant), ttl time.Duration) string {
		grant := access.Everything("ada", "lobby")
		change(&grant)
		token, err := r.keys.Mint("", grant, ttl)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	forged, err := access.Mint(apiKey, "another secret of sufficient length", access.Everything("ada", "lobby"), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	nothing := func(*access.Grant) {}
	for name, tc := range map[string]struct {
		first wire.Message
		want  wire.Code
		close websocket.StatusCode
	}{
		"expired":      {&wire.Join{Token: mint(nothing, -time.Hour)}, wire.CodeTokenExpired, websocket.StatusPolicyViolation},
		"forged":       {&wire.Join{Token: forged}, wire.CodeBadToken, websocket.StatusPolicyViolation},
		"other room":   {&wire.Join{Token: mint(nothing, time.Hour), Room: "attic"}, wire.CodeNotAllowed, websocket.StatusPolicyViolation},
		"no roomJoin":  {&wire.Join{Token: mint(func(g *access.Grant) { g.RoomJoin = false }, time.Hour)}, wire.CodeNotAllowed, websocket.StatusPolicyViolation},
		"no room":      {&wire.Join{Token: mint(func(g *access.Grant) { g.Room = "" }, time.Hour)}, wire.CodeBadRoom, websocket.StatusPolicyViolation},
		"no token":     {&wire.Join{Room: "lobby"}, wire.CodeBadToken, websocket.StatusPolicyViolation},
		"huge token":   {&wire.Join{Token: strings.Repeat("x", 20_000)}, wire.CodeBadToken, websocket.StatusPolicyViolation},
		"long room":    {&wire.Join{Token: mint(func(g *access.Grant) { g.Room = "" }, time.Hour), Room: strings.Repeat("x", 129)}, wire.CodeBadRoom, websocket.StatusPolicyViolation},
		"endless room": {&wire.Join{Token: mint(func(g *access.Grant) { g.Room = "" }, time.Hour), Room: strings.Repeat("x", 20_000)}, wire.CodeBadRoom, websocket.StatusPolicyViolation},
		"unprintable":  {&wire.Join{Token: mint(func(g *access.Grant) { g.Room = "" }, time.Hour), Room: "a\u202eb"}, wire.CodeBadRoom, websocket.StatusPolicyViolation},
		"full":         {&wire.Join{Token: mint(func(g *access.Grant) { g.Room = "full" }, time.Hour)}, wire.CodeRoomFull, websocket.StatusPolicyViolation},
		"offer first":  {&wire.Offer{ID: "1", SDP: "v=0"}, wire.CodeBadMessage, websocket.StatusPolicyViolation},
		"forged again": {&wire.Resume{Resume: "hfr2.e30.e30", Attempt: 2}, wire.CodeBadToken, websocket.StatusPolicyViolation},
	} {
		t.Run(name, func(t *testing.T) {
			c := e.dial()
			c.say(tc.first)
			code, heard := c.closed()
			if len(heard) != 1 || code != tc.close {
				t.Fatalf("heard %v, closed with %v", heard, code)
			}
			if fault, ok := heard[0].(*wire.Error); !ok || fault.Code != tc.want || fault.Message == "" || fault.Retryable {
				t.Fatalf("heard %+v, want %s", heard[0], tc.want)
			}
		})
	}
}

// TestNamesAreShownSafely: what the others are shown of a name cannot disturb their pages.
func TestNamesAreShownSafely(t *testing.T) {
	r, _, e := lobby(t)
	grace, _ := e.join("lobby", "Grace")
	for i, tc := range []struct{ token, said, want string }{
		{"A\u202ed\u200ba", "Eve", "Ada"},
		{"", " E\x07ve\u2066 ", "Eve (self-chosen)"},
		{"\u202e", "", "somebody-2"},
		{"", strings.Repeat("ä", 128), strings.Repeat("ä", 121) + " (self-chosen)"}, // no longer than any other
	} {
		grant := access.Everything(fmt.Sprintf("somebody-%d", i), "lobby")
		grant.Name = tc.token
		token, err := r.keys.Mint(apiKey, grant, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		c := e.dial()
		c.say(&wire.Join{Token: token, Name: tc.said})
		joined := hear[*wire.Joined](c)
		if told := hear[*wire.PeerJoined](grace); joined.Name != tc.want || told.Peer.Name != tc.want {
			t.Errorf("%+q and %+q are shown as %+q and %+q, want %q", tc.token, tc.said, joined.Name, told.Peer.Name, tc.want)
		}
	}
}

func TestRefusalsOfPlacementMayBeTriedAgain(t *testing.T) {
	for want, err := range map[wire.Code]error{
		wire.CodeNotReady:         orchestrator.ErrNotSettled,
		wire.CodeNoNodes:          orchestrator.ErrNoNodes,
		wire.CodeNoCapacity:       &orchestrator.NoHeadroomError{},
		wire.CodeStoreUnavailable: orchestrator.ErrStoreUnavailable,
		wire.CodeInternal:         errors.New("nobody foresaw this"),
	} {
		t.Run(string(want), func(t *testing.T) {
			r := newRig(t)
			r.placer.fail = err
			c := r.signalingNode(nil).dial()
			c.say(&wire.Join{Token: r.token("lobby", "Ada")})
			fault := hear[*wire.Error](c)
			if fault.Code != want || !fault.Retryable || fault.RetryAfterMs == 0 {
				t.Fatalf("heard %+v, want %s", fault, want)
			}
			if code, _ := c.closed(); code != websocket.StatusTryAgainLater {
				t.Fatalf("closed with %v", code)
			}
		})
	}
}

// TestJoinFindsAnotherNode walks the refusals that a join can do something about.
func TestJoinFindsAnotherNode(t *testing.T) {
	for name, tc := range map[string]struct {
		refused control.Refusal
		calls   []string
	}{
		"no headroom": {control.Refusal_REFUSAL_NO_HEADROOM, []string{"place", "place again"}},
		"draining":    {control.Refusal_REFUSAL_DRAINING, []string{"place", "place again"}},
		"fenced":      {control.Refusal_REFUSAL_FENCED, []string{"place", "place"}},
		"wrong boot":  {control.Refusal_REFUSAL_WRONG_BOOT, []string{"place", "place"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			one, two := r.node("sfu-1"), r.node("sfu-2")
			r.placer.set("lobby", one.pin(firstEpoch))
			r.placer.again = func(pin.Pin) (pin.Pin, error) { return two.pin(firstEpoch + 1), nil }
			one.set(func() {
				one.refuse = func(*control.Attach) *control.Refused {
					if tc.refused == control.Refusal_REFUSAL_FENCED || tc.refused == control.Refusal_REFUSAL_WRONG_BOOT {
						r.placer.set("lobby", two.pin(firstEpoch+1)) // somebody moved it meanwhile
					}
					return &control.Refused{Code: tc.refused, Current: control.FenceProto(two.pin(firstEpoch + 1).Fence)}
				}
			})
			_, joined := r.signalingNode(nil).join("lobby", "Ada")
			if joined.Node != "sfu-2" || joined.Epoch != firstEpoch+1 {
				t.Fatalf("joined %+v", joined)
			}
			if !slices.Equal(r.placer.calls, tc.calls) || r.placer.opens != 1 {
				t.Fatalf("calls %v, opened %d", r.placer.calls, r.placer.opens)
			}
		})
	}
}

// TestJoinOutlastsADeadNode has the pin's node dead until placement heals it.
func TestJoinOutlastsADeadNode(t *testing.T) {
	r := newRig(t)
	dead, two := r.node("sfu-1"), r.node("sfu-2")
	dead.stop()
	r.placer.set("lobby", dead.pin(firstEpoch))
	c := r.signalingNode(nil).dial()
	c.say(&wire.Join{Token: r.token("lobby", "Ada")})
	testkit.Eventually(t, "second look", func() bool {
		r.placer.mu.Lock()
		defer r.placer.mu.Unlock()
		return len(r.placer.calls) >= 2
	})
	r.placer.set("lobby", two.pin(firstEpoch+1))
	if joined := hear[*wire.Joined](c); joined.Node != "sfu-2" {
		t.Fatalf("joined %+v", joined)
	}
}

func TestJoinGivesUpOnANodeThatStaysAway(t *testing.T) {
	r := newRig(t)
	dead := r.node("sfu-1")
	dead.stop()
	r.placer.set("lobby", dead.pin(firstEpoch))
	c := r.signalingNode(nil).dial()
	c.say(&wire.Join{Token: r.token("lobby", "Ada")})
	if fault := hear[*wire.Error](c); fault.Code != wire.CodeNodeUnreachable || !fault.Retryable {
		t.Fatalf("heard %+v", fault)
	}
}
