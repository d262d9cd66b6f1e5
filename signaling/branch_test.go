package signaling

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

func (n *node) place() *control.Place {
	return &control.Place{Node: string(n.id), Boot: string(n.boot), Control: n.control}
}

// sendsTo has a node send whoever knows places to another one, or to the owner if that is nil. Others stay.
func (n *node) sendsTo(to *control.Place) {
	n.set(func() {
		n.refuse = func(a *control.Attach) *control.Refused {
			if !a.GetKnowsPlaces() {
				return nil
			}
			return &control.Refused{Code: control.Refusal_REFUSAL_ELSEWHERE, Elsewhere: to}
		}
	})
}

// spread is a room whose owner sends people to a branch.
func spread(t *testing.T) (r *rig, owner, branch *node, e *signalingNode) {
	t.Helper()
	r, owner, branch, e = lobbyAndSpare(t)
	branch.set(func() { branch.branch = true })
	owner.sendsTo(branch.place())
	return r, owner, branch, e
}

func (e *signalingNode) joinPlaces(name string) (*client, *wire.Joined) {
	e.rig.t.Helper()
	c := e.dial()
	c.say(&wire.Join{Token: e.rig.token("lobby", name), Places: true})
	return c, hear[*wire.Joined](c)
}

// elsewhere has the node give up the places of everybody of that name.
func (n *node) elsewhere(name string, to *control.Place, live bool) {
	n.say(name, n.pin(firstEpoch).Fence, &control.PeerEvent{Event: &control.PeerEvent_Elsewhere{Elsewhere: &control.Elsewhere{Place: to, Live: live}}})
}

func generations(n *node) (all []uint64) {
	for _, a := range n.attached() {
		all = append(all, a.GetGeneration())
	}
	return all
}

func TestTheOwnerSendsAPersonToABranch(t *testing.T) {
	_, owner, branch, e := spread(t)
	ada, joined := e.joinPlaces("Ada")
	if joined.Node != branch.id || joined.Epoch != firstEpoch {
		t.Fatalf("joined at %s under %d", joined.Node, joined.Epoch)
	}
	if at, there := generations(owner), generations(branch); !slices.Equal(at, there) || len(there) != 1 {
		t.Errorf("attached at the owner with %v, at the branch with %v", at, there)
	}
	if there := branch.attached()[0]; there.GetPin().GetBoot() != string(owner.boot) || !there.GetKnowsPlaces() {
		t.Errorf("at the branch: %v", there)
	}
	ada.offer("o-1", true)
	if answer := waitFor[*wire.Answer](ada); answer.Node != branch.id || answer.Epoch != firstEpoch {
		t.Errorf("answer %+v", answer)
	}
}

// An older client would take a restart under a known epoch for a stale one.
func TestAClientWithoutPlacesStaysWithTheOwner(t *testing.T) {
	_, owner, branch, e := spread(t)
	if _, joined := e.join("lobby", "Ada"); joined.Node != owner.id || len(branch.attached()) != 0 {
		t.Errorf("joined at %s", joined.Node)
	}
}

func TestAResumeAsksTheOwnerFirst(t *testing.T) {
	r, owner, branch, e := spread(t)
	ada, joined := e.joinPlaces("Ada")
	ada.offer("o-1", true)
	waitFor[*wire.Answer](ada)
	other := r.signalingNode(nil)
	again := other.dial()
	again.say(&wire.Resume{Resume: joined.Resume, Attempt: 2, Places: true})
	if resumed := hear[*wire.Resumed](again); resumed.Node != branch.id || !resumed.MediaAlive {
		t.Errorf("resumed %+v", resumed)
	}
	// The former session asks once more, and is refused.
	if at, there := generations(owner), generations(branch); len(at) < 2 || len(there) < 2 || at[1] != there[1] {
		t.Errorf("attached at the owner with %v, at the branch with %v", at, there)
	}
}

// Nodes that send a person around in a circle cost a bounded number of attempts.
func TestHopsAreBounded(t *testing.T) {
	_, owner, branch, e := spread(t)
	branch.sendsTo(branch.place())
	c := e.dial()
	c.say(&wire.Join{Token: e.rig.token("lobby", "Ada"), Places: true})
	testkit.Eventually(t, "a pause of the attempts", func() bool { return len(owner.attached()) > branchTries })
	const most = branchTries * mostHops
	if at, there := len(owner.attached()), len(branch.attached()); there > most*(at/branchTries+1) {
		t.Errorf("%d attempts at the owner, %d at the branch", at, there)
	}
	branch.set(func() { branch.refuse = nil })
	if joined := hear[*wire.Joined](c); joined.Node != branch.id {
		t.Errorf("joined at %s", joined.Node)
	}
}

// What a branch refuses is asked of the owner again, which takes the person or names another place. No refusal of a branch moves the room.
func TestABranchThatRefusesIsLeft(t *testing.T) {
	for _, code := range []control.Refusal{
		control.Refusal_REFUSAL_WRONG_BOOT, control.Refusal_REFUSAL_UNCONFIRMED, control.Refusal_REFUSAL_ELSEWHERE,
		control.Refusal_REFUSAL_DRAINING, control.Refusal_REFUSAL_NO_HEADROOM, control.Refusal_REFUSAL_ROOM_FULL,
	} {
		refusal := &control.Refused{Code: code}
		t.Run(code.String(), func(t *testing.T) {
			r, owner, branch, e := spread(t)
			branch.set(func() {
				branch.refuse = func(*control.Attach) *control.Refused {
					owner.open()
					return refusal
				}
			})
			if _, joined := e.joinPlaces("Ada"); joined.Node != owner.id {
				t.Errorf("joined at %s", joined.Node)
			}
			if at, there := generations(owner), generations(branch); len(at) != 2 || len(there) != 1 || at[1] <= there[0] {
				t.Errorf("attached at the owner with %v, at the branch with %v", at, there)
			}
			r.placer.mu.Lock()
			defer r.placer.mu.Unlock()
			if slices.Contains(r.placer.calls, "place again") {
				t.Errorf("the placer was asked %v", r.placer.calls)
			}
		})
	}
}

// A branch's death needs neither a new pin nor the store.
func TestABranchThatDiesIsReplaced(t *testing.T) {
	for name, die := range map[string]func(*node, *signalingNode){
		"its process ends":       func(n *node, _ *signalingNode) { n.stop() },
		"failover has proved it": func(n *node, e *signalingNode) { e.Hub().BranchDied(n.boot) },
	} {
		t.Run(name, func(t *testing.T) {
			r, owner, branch, e := spread(t)
			third := r.node("sfu-3")
			third.set(func() { third.branch = true })
			ada, _ := e.joinPlaces("Ada")
			r.placer.mu.Lock()
			r.placer.fail = fmt.Errorf("the store is away")
			r.placer.mu.Unlock()
			owner.sendsTo(third.place())
			die(branch, e)
			if restart := waitFor[*wire.Restart](ada); restart.Node != "sfu-3" || restart.Epoch != firstEpoch || restart.Live {
				t.Errorf("restart %+v", restart)
			}
			if at := third.attached(); len(at) != 1 || at[0].GetGeneration() <= branch.attached()[0].GetGeneration() {
				t.Errorf("attached with %v", at)
			}
		})
	}
}

// An owner may still name a branch that is known here to be dead, as a frozen one. An attempt there would hang.
func TestADeadBranchIsNotAsked(t *testing.T) {
	r, owner, branch, e := spread(t)
	third := r.node("sfu-3")
	third.set(func() { third.branch = true })
	ada, _ := e.joinPlaces("Ada")
	r.views.bury(branch.boot)
	asked := len(owner.attached())
	e.Hub().BranchDied(branch.boot)
	testkit.Eventually(t, "the owner is asked again", func() bool { return len(owner.attached()) > asked+1 })
	if there := len(branch.attached()); there != 1 {
		t.Errorf("the dead branch was asked %d times more", there-1)
	}
	owner.sendsTo(third.place())
	if restart := waitFor[*wire.Restart](ada); restart.Node != "sfu-3" {
		t.Errorf("restart %+v", restart)
	}
}

// A stream that breaks says nothing of the branch, which has the person's media.
func TestABrokenLinkToABranchRestartsNobody(t *testing.T) {
	_, owner, branch, e := spread(t)
	ada, _ := e.joinPlaces("Ada")
	ada.offer("o-1", true)
	waitFor[*wire.Answer](ada)
	branch.breakLinks()
	testkit.Eventually(t, "another attach", func() bool { return len(branch.attached()) == 2 })
	ada.say(&wire.Ping{T: 1})
	for {
		switch m := ada.next().(type) {
		case *wire.Restart:
			t.Fatalf("restart %+v", m)
		case *wire.Pong:
			if len(owner.attached()) != 2 {
				t.Error("the owner was not asked")
			}
			return
		}
	}
}

func TestAPersonIsSentElsewhereInMidCall(t *testing.T) {
	_, owner, branch, e := spread(t)
	owner.open()
	ada, joined := e.joinPlaces("Ada")
	if joined.Node != owner.id {
		t.Fatalf("joined at %s", joined.Node)
	}
	steps := []struct {
		at, to *node
		live   bool
		ask    bool // the owner: no place is named
	}{{owner, branch, true, false}, {branch, owner, false, false}, {owner, branch, false, true}}
	for i, step := range steps {
		place := step.to.place()
		if step.ask {
			owner.sendsTo(branch.place())
			place = nil
		}
		step.at.elsewhere("Ada", place, step.live)
		restart := waitFor[*wire.Restart](ada)
		if restart.Node != step.to.id || restart.Epoch != firstEpoch || restart.Live != step.live {
			t.Errorf("step %d: restart %+v", i, restart)
		}
		ada.offer(fmt.Sprint("o-", i), true)
		waitFor[*wire.Answer](ada)
		ada.say(&wire.Migrated{Epoch: firstEpoch, Attempt: 1, How: wire.HowLive})
	}
	testkit.Eventually(t, "word of the arrival", func() bool { return branch.arrived() > 0 })
	if at, there := generations(owner), generations(branch); at[0] >= there[0] || there[0] >= at[1] {
		t.Errorf("attached at the owner with %v, at the branch with %v", at, there)
	}
}

// Until a person who moves live has arrived, the former node's chat lines are told, under the epoch that the client knows.
func TestTheFormerNodeOfALiveMoveIsHeardOut(t *testing.T) {
	_, owner, branch, e := spread(t)
	owner.open()
	ada, _ := e.joinPlaces("Ada")
	owner.elsewhere("Ada", branch.place(), true)
	waitFor[*wire.Restart](ada)
	owner.say("Ada", owner.pin(firstEpoch).Fence, &control.PeerEvent{Event: &control.PeerEvent_Chat{Chat: &control.Chat{Peer: "p", Text: "late"}}})
	if line := waitFor[*wire.Chat](ada); line.Text != "late" || line.Epoch != firstEpoch {
		t.Errorf("line %+v", line)
	}
}

// The owner's death is as any node's: people at branches hear of the new pin, too.
func TestPeopleAtABranchFollowANewPin(t *testing.T) {
	r, owner, branch, e := spread(t)
	ada, _ := e.joinPlaces("Ada")
	third := r.node("sfu-3")
	owner.stop()
	to := third.pin(firstEpoch + 1)
	r.placer.set("lobby", to)
	e.Hub().Moved(t.Context(), "lobby", to)
	if restart := waitFor[*wire.Restart](ada); restart.Node != "sfu-3" || restart.Epoch != firstEpoch+1 {
		t.Errorf("restart %+v", restart)
	}
	if boots := e.Hub().Branches(); len(boots) != 0 {
		t.Errorf("the hub takes %v for branches of %s", boots, branch.id)
	}
}

// A branch may be the first to tell that its owner died and another branch took over. People of the dead owner do not move live.
func TestABranchTellsThatAnotherOneTookOver(t *testing.T) {
	for _, live := range []bool{false, true} {
		t.Run(fmt.Sprint("live ", live), func(t *testing.T) {
			r, _, branch, e := spread(t)
			e.joinPlaces("Ada")
			grace, _ := e.join("lobby", "Grace")
			to := r.node("sfu-3").pin(firstEpoch + 1)
			r.placer.mu.Lock()
			r.placer.fail = fmt.Errorf("the store is away")
			r.placer.mu.Unlock()
			branch.say("Ada", branch.pin(firstEpoch).Fence, &control.PeerEvent{Event: &control.PeerEvent_Fenced{
				Fenced: &control.Fenced{Current: control.FenceProto(to.Fence), Pin: control.PinProto(to), Live: live},
			}})
			if restart := waitFor[*wire.Restart](grace); restart.Node != "sfu-3" || restart.Epoch != firstEpoch+1 || restart.Live != live {
				t.Errorf("restart %+v", restart)
			}
		})
	}
}

// A client at a branch that gets no media is evidence about the branch, and none about the owner.
func TestStallsCountAgainstTheNodeThatHasTheMedia(t *testing.T) {
	_, owner, branch, e := spread(t)
	ada, _ := e.joinPlaces("Ada")
	e.join("lobby", "Bob")
	ada.say(&wire.Stalled{Epoch: firstEpoch, SilentMs: 2000})
	stalls := func(boot pin.BootID) string { return fmt.Sprint(e.Hub().Stalled(boot)) }
	testkit.Eventually(t, "a stall of the branch", func() bool { return stalls(branch.boot) == "1 1" })
	if got := stalls(owner.boot); got != "0 0" {
		t.Errorf("of the owner %s stall", got)
	}
}

// The owner and a branch number changes alike. Whoever comes to a branch that is behind is not told of the past again.
func TestABranchMayBeBehindItsOwner(t *testing.T) {
	_, owner, branch, e := spread(t)
	owner.open()
	const run = 77
	bob, eve := &control.Peer{Id: "p-bob", Name: "Bob"}, &control.Peer{Id: "p-eve", Name: "Eve"}
	for _, n := range []*node{owner, branch} {
		n.set(func() { n.run = run })
	}
	ada, joined := e.joinPlaces("Ada")
	change := func(n *node, seq uint64, changes ...*control.RosterChange) {
		encoded, err := control.EncodeRosterChanges(changes)
		if err != nil {
			t.Fatal(err)
		}
		n.say("Ada", n.pin(firstEpoch).Fence, &control.PeerEvent{Seq: seq, Event: &control.PeerEvent_RosterChanges{RosterChanges: encoded}})
	}
	came := func(p *control.Peer) *control.RosterChange {
		return &control.RosterChange{Change: &control.RosterChange_Joined{Joined: p}}
	}
	change(owner, joined.Seq+1, came(bob))
	if m := waitFor[*wire.PeerJoined](ada); m.Peer.Name != "Bob" {
		t.Fatalf("%+v", m)
	}
	owner.elsewhere("Ada", branch.place(), false)
	waitFor[*wire.Restart](ada)
	change(branch, joined.Seq+1, came(bob))
	change(branch, joined.Seq+2, came(eve))
	for {
		switch m := ada.next().(type) {
		case *wire.Roster:
			t.Fatalf("told of a roster of the past: %+v", m)
		case *wire.PeerJoined:
			if m.Peer.Name != "Eve" || m.Seq != joined.Seq+2 {
				t.Errorf("%+v", m)
			}
			return
		}
	}
}

// A room is one row, however many nodes carry it. A branch never looks like a second owner.
func TestARoomWithBranchesIsOneRow(t *testing.T) {
	r, owner, branch, e := lobbyAndSpare(t)
	owner.set(func() {
		owner.egress = 1000
		owner.branches = []*control.Member{{Place: branch.place(), People: 1, Why: "an operator ordered it", SinceUnixMs: firstEpoch, Up: true, Sent: &control.LinkFigures{Layers: 3}}}
	})
	branch.set(func() { branch.owner, branch.egress = string(owner.id), 1000 })
	admin := r.mint(access.Operator("operator"), generous)
	const members = `"members":[{"node":"sfu-1","people":1,"egressBitsPerSecond":1000},{"node":"sfu-2","people":1,"egressBitsPerSecond":1000,` +
		`"why":"an operator ordered it","since":1769000000000,"link":{"up":true,"sent":{"packets":0,"lost":0,"layers":3,"known":0},`
	for _, path := range []string{"rooms", "rooms/lobby"} {
		got, text, _ := e.request(http.MethodGet, "/api/v1/"+path, admin)
		if got != http.StatusOK || strings.Count(text, `"room":"lobby","node"`) != 1 || !strings.Contains(text, members) || !strings.Contains(text, `"identity":"ada","node":"sfu-2"`) {
			t.Errorf("%s: %d %s", path, got, text)
		}
	}
	got, text, _ := e.request(http.MethodGet, "/api/v1/room-list?search=sfu-2", admin)
	if got != http.StatusOK || !strings.Contains(text, `"node":"sfu-1","people":2`) || !strings.Contains(text, `"branches":["sfu-2"]`) || !strings.Contains(text, `"total":1`) {
		t.Errorf("the list: %d %s", got, text)
	}
	owner.stop()
	if _, text, _ := e.request(http.MethodGet, "/api/v1/rooms", admin); !strings.Contains(text, `{"rooms":[],"unreachable":["sfu-1"]}`) {
		t.Errorf("without its owner: %s", text)
	}
}

func TestAnOperatorSpreadsAndGathersARoom(t *testing.T) {
	r, owner, branch, e := lobbyAndSpare(t)
	admin := r.mint(access.Operator("operator"), generous)
	owner.set(func() { owner.branches = []*control.Member{{Place: branch.place()}} })
	for _, order := range []struct{ verb, body string }{{"spread", `{"node":"sfu-2"}`}, {"spread", ""}, {"gather", `{"node":"sfu-2"}`}, {"gather", `{}`}} {
		got, text, _ := e.requestBody(http.MethodPost, "/api/v1/rooms/lobby/"+order.verb, admin, order.body)
		if got != http.StatusOK || text != `{"room":"lobby","owner":"sfu-1","branches":["sfu-2"]}`+"\n" {
			t.Errorf("%s %s: %d %s", order.verb, order.body, got, text)
		}
	}
	owner.set(func() {
		for i, s := range owner.spreads {
			if s.GetGather() != (i > 1) || (s.GetPlace().GetBoot() == string(branch.boot)) != (i%2 == 0) || s.GetRoom() != "lobby" {
				t.Errorf("order %d: %v", i, s)
			}
		}
	})
}

func TestAnOrderToSpreadIsRefusedInWords(t *testing.T) {
	r, owner, _, e := lobbyAndSpare(t)
	admin := r.mint(access.Operator("operator"), generous)
	owner.set(func() { owner.spreadErr = status.Error(codes.FailedPrecondition, "node sfu-2 drains") })
	for _, c := range []struct {
		path, body, token string
		change            func()
		want              int
		says              string
	}{
		{path: "lobby/spread", token: r.token("lobby", "Ada"), want: http.StatusForbidden},
		{path: "other/gather", token: admin, want: http.StatusNotFound, says: "No room named other is open"},
		{path: "lobby/spread", token: admin, body: `{"node":"sfu-9"}`, want: http.StatusConflict, says: "no media node of this name lives"},
		{path: "lobby/spread", token: admin, body: `{"node":7}`, want: http.StatusBadRequest},
		{path: "lobby/spread", token: admin, body: `{"node":"sfu-2"}`, want: http.StatusConflict, says: "node sfu-2 drains"},
		{path: "lobby/gather", token: admin, change: func() { owner.spreadErr = status.Error(codes.Unimplemented, "") }, want: http.StatusConflict, says: "keeps every room whole"},
		{path: "lobby/gather", token: admin, change: func() { owner.spreadErr, owner.silent = nil, true }, want: http.StatusNotFound, says: "No room named lobby"},
		{path: "lobby/gather", token: admin, change: func() { owner.spreadErr = status.Error(codes.Unavailable, "") }, want: http.StatusServiceUnavailable, says: "node_unreachable"},
	} {
		if c.change != nil {
			owner.set(c.change)
		}
		if got, text, _ := e.requestBody(http.MethodPost, "/api/v1/rooms/"+c.path, c.token, c.body); got != c.want || !strings.Contains(text, c.says) {
			t.Errorf("%s %s: %d %s, want %d %s", c.path, c.body, got, text, c.want, c.says)
		}
	}
}
