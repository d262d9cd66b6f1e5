package signaling

import (
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/rest"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

func runs(g *access.Grant) { g.RoomAdmin = true }

// update has the node tell everybody of an entry that has changed.
func (n *node) update(name string, change func(*control.Peer)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.peers {
		if p.entry.GetName() != name {
			continue
		}
		entry, _ := proto.Clone(p.entry).(*control.Peer)
		change(entry)
		p.entry = entry
		for _, other := range n.peers {
			n.send(other, control.FenceProto(n.pin(firstEpoch).Fence), &control.PeerEvent{Seq: 9, Event: &control.PeerEvent_RosterChange{
				RosterChange: &control.RosterChange{Change: &control.RosterChange_Updated{Updated: entry}},
			}})
		}
	}
}

func (c *client) fault(want wire.Code, words string) {
	c.t.Helper()
	if got := hear[*wire.Error](c); got.Code != want || !strings.Contains(got.Message, words) {
		c.t.Errorf("told %+v, want %s and %q", got, want, words)
	}
}

func TestWhoRunsTheRoomModerates(t *testing.T) {
	_, n, e := lobby(t)
	ada, joined := e.joinWith("ada", runs)
	if !joined.Permissions.Moderate {
		t.Errorf("who has roomAdmin is told %+v", joined.Permissions)
	}
	bob, guest := e.join("lobby", "Bob")
	hear[*wire.PeerJoined](ada)
	if guest.Permissions.Moderate {
		t.Error("who lacks roomAdmin moderates")
	}
	grant := access.Everything("eve", "")
	grant.RoomAdmin = true
	eve := e.dial()
	eve.say(&wire.Join{Token: e.rig.mint(grant, time.Hour), Room: "lobby"})
	if stranger := hear[*wire.Joined](eve); stranger.Permissions.Moderate {
		t.Error("roomAdmin of no room moderates")
	}
	hear[*wire.PeerJoined](ada)
	hear[*wire.PeerJoined](bob)
	bob.say(&wire.Moderate{Act: wire.ActRemove, Peer: joined.Peer})
	bob.refusedWith("roomAdmin")
	ada.say(&wire.Moderate{Act: wire.ActMute, Peer: guest.Peer, Source: wire.SourceMicrophone})
	ada.say(&wire.Moderate{Act: wire.ActAskUnmute, Peer: guest.Peer, Source: wire.SourceCamera})
	ada.say(&wire.Moderate{Act: wire.ActGiveUp})
	for _, want := range []string{`Bob: ACT_MUTE SOURCE_MICROPHONE by "ada"`, `Bob: ACT_ASK_UNMUTE SOURCE_CAMERA by "ada"`, `ada: ACT_GIVE_UP`} {
		testkit.Eventually(t, want, func() bool { return strings.Contains(n.said(), want) })
	}
	ada.write(`{"type":"moderate","act":"grant","peer":"p-nobody","request":"9"}`)
	if got := hear[*wire.Error](ada); got.Code != wire.CodeNotAllowed || got.Request != "9" || !strings.Contains(got.Message, "not in the room") {
		t.Errorf("who grants a stranger something is told %+v", got)
	}
	n.set(func() { n.silent = true })
	ada.say(&wire.Moderate{Act: wire.ActAskUnmute, Peer: guest.Peer, Source: wire.SourceMicrophone})
	ada.fault(wire.CodeTooManyMessages, "a moment ago")
	ada.say(&wire.Moderate{Act: wire.ActRemove, Peer: guest.Peer})
	if bye := hear[*wire.Bye](bob); bye.Code != wire.CodeKicked {
		t.Errorf("the removed is told %+v", bye)
	}
	e.refused(guest.Resume, 2, wire.CodeKicked)
	n.stop()
	ada.say(&wire.Moderate{Act: wire.ActGrant, Peer: guest.Peer})
	ada.fault(wire.CodeNodeUnreachable, "")
}

// TestTheGrantIsHandedOnAndSurvives a resume on another signaling node and a move of the room; given up, it stays so.
func TestTheGrantIsHandedOnAndSurvives(t *testing.T) {
	r, one, two, e := lobbyAndSpare(t)
	other := r.signalingNode(nil)
	bob, joined := e.join("lobby", "Bob")
	one.update("Bob", func(p *control.Peer) { p.Moderator, p.GrantJudgedUnixMs = true, 7 })
	if told := hear[*wire.PeerUpdated](bob); !told.Peer.Moderator {
		t.Errorf("told %+v", told)
	}
	granted := bob.permitted(true)
	if !granted.Permissions.Publish || granted.Resume == joined.Resume {
		t.Errorf("told %+v", granted)
	}
	_ = bob.conn.CloseNow()
	bob, _ = other.resume(granted.Resume, 2)
	moderates := func() {
		t.Helper()
		bob.say(&wire.Moderate{Act: wire.ActLowerHand, Peer: "p-nobody"})
		bob.fault(wire.CodeNotAllowed, "not in the room") // and not that he may not
	}
	moderates()
	r.placer.set("lobby", two.pin(firstEpoch+1))
	other.Hub().Moved(t.Context(), "lobby", two.pin(firstEpoch+1))
	hear[*wire.Restart](bob)
	moderates()
	if a := two.attached()[0].GetPeer(); !a.GetModerator() || a.GetGrantJudgedUnixMs() != 7 {
		t.Errorf("the next node is told %v", a)
	}
	// A token from before the grant: the node knows better.
	_ = bob.conn.CloseNow()
	bob, _ = e.resume(joined.Resume, 3)
	bob.permitted(true)
	moderates()
}

// TestWhoIsSilencedIsToldOnceAndTheTruth: also when it was silenced while its signaling node had no word of it.
func TestWhoIsSilencedIsTold(t *testing.T) {
	r, one, two, e := lobbyAndSpare(t)
	other := r.signalingNode(nil)
	bob, joined := e.join("lobby", "Bob")
	bob.say(&wire.Mute{Source: wire.SourceMicrophone, Muted: false})
	testkit.Eventually(t, "his sound", func() bool { return strings.Contains(one.said(), "SOURCE_MICROPHONE false") })
	one.say("Bob", one.pin(firstEpoch).Fence, &control.PeerEvent{Event: &control.PeerEvent_Silenced{
		Silenced: &control.Silenced{Source: control.Source_SOURCE_MICROPHONE, By: "Ada"},
	}})
	if told := hear[*wire.MutedBy](bob); told.By != "Ada" || told.Source != wire.SourceMicrophone {
		t.Errorf("told %+v", told)
	}
	one.update("Bob", func(p *control.Peer) { p.AudioMuted, p.Silenced, p.HandRaisedUnixMs = true, 1|1<<1, 77 })
	hear[*wire.PeerUpdated](bob)
	// The next node learns what the last one said, and hears no unmute.
	r.placer.set("lobby", two.pin(firstEpoch+1))
	e.Hub().Moved(t.Context(), "lobby", two.pin(firstEpoch+1))
	hear[*wire.Restart](bob)
	a := two.attached()[0]
	if p := a.GetPeer(); p.GetSilenced() != 1 || !p.GetAudioMuted() || p.GetHandRaisedUnixMs() != 77 || a.GetExpected()[0].GetSilenced() != 3 {
		t.Errorf("the next node is told %v", a)
	}
	testkit.Eventually(t, "his mute", func() bool { return strings.Contains(two.said(), "SOURCE_MICROPHONE true") })
	// On a new signaling node he is told by `resumed`, once.
	_ = bob.conn.CloseNow()
	two.set(func() {
		for _, p := range two.peers {
			entry, _ := proto.Clone(p.entry).(*control.Peer)
			entry.Silenced = 1
			p.entry = entry
		}
	})
	bob, resumed := other.resume(joined.Resume, 2)
	if !reflect.DeepEqual(resumed.Silenced, []wire.Source{wire.SourceMicrophone}) {
		t.Errorf("resumed with %+v", resumed)
	}
	bob.say(&wire.Mute{Source: wire.SourceMicrophone, Muted: false})
	testkit.Eventually(t, "his unmute", func() bool { return strings.Contains(two.said(), "SOURCE_MICROPHONE false") })
	bob.say(&wire.Ping{T: 1})
	hear[*wire.Pong](bob)
}

// TestWhatIsUnmutedMeanwhileStaysSo, and what is not, does not: while the link to the node is away.
func TestWhatIsUnmutedMeanwhileStaysSo(t *testing.T) {
	_, n, e := lobby(t)
	bob, _ := e.join("lobby", "Bob")
	bob.say(&wire.Mute{Source: wire.SourceCamera, Muted: false})
	testkit.Eventually(t, "his camera", func() bool { return strings.Contains(n.said(), "SOURCE_CAMERA false") })
	n.set(func() {
		n.refuse = func(*control.Attach) *control.Refused {
			return &control.Refused{Code: control.Refusal_REFUSAL_UNCONFIRMED}
		}
		for _, p := range n.peers {
			entry, _ := proto.Clone(p.entry).(*control.Peer)
			entry.Silenced, entry.AudioMuted, entry.VideoMuted = 3, true, true
			p.entry = entry
		}
	})
	n.breakLinks()
	attaches := len(n.attached())
	testkit.Eventually(t, "an attempt", func() bool { return len(n.attached()) > attaches })
	bob.say(&wire.Mute{Source: wire.SourceMicrophone, Muted: false})
	bob.say(&wire.Ping{T: 1})
	hear[*wire.Pong](bob)
	n.set(func() { n.heard, n.refuse = nil, nil })
	if told := hear[*wire.Roster](bob); !told.Roster[0].AudioMuted {
		t.Errorf("told %+v", told)
	}
	if told := hear[*wire.MutedBy](bob); told.Source != wire.SourceCamera {
		t.Errorf("told %+v", told)
	}
	testkit.Eventually(t, "both mutes", func() bool {
		said := n.said()
		return strings.Contains(said, "SOURCE_MICROPHONE false") && strings.Contains(said, "SOURCE_CAMERA true")
	})
}

func TestEverybodyRaisesAHandAndReacts(t *testing.T) {
	_, n, e := lobby(t)
	bob, _ := e.join("lobby", "Bob")
	bob.say(&wire.Hand{Raised: true})
	bob.say(&wire.React{Emoji: "❤️"})
	testkit.Eventually(t, "both", func() bool { return strings.Contains(n.said(), "Bob hand true\nBob reacts ❤️") })
	n.say("Bob", n.pin(firstEpoch).Fence, &control.PeerEvent{Event: &control.PeerEvent_Reactions{
		Reactions: &control.Reactions{Reactions: []*control.Reaction{{Peer: "p-2", Emoji: "👍"}}},
	}})
	if told := hear[*wire.Reactions](bob); !reflect.DeepEqual(told.Reactions, wire.List[wire.Reaction]{{Peer: "p-2", Emoji: "👍"}}) {
		t.Errorf("told %+v", told)
	}
	for range 20 {
		bob.say(&wire.React{Emoji: "👍"})
	}
	bob.fault(wire.CodeTooManyMessages, "Slow down")
	spy, _ := e.joinWith("spy", func(g *access.Grant) { g.Hidden, g.CanPublish, g.CanPublishData = true, false, false })
	spy.say(&wire.Hand{Raised: true})
	spy.fault(wire.CodeNotAllowed, "hidden")
}

func TestTheRoomIsModeratedOverREST(t *testing.T) {
	r, n, e := lobby(t)
	_, joined := e.join("lobby", "Bob")
	admin := r.mint(access.Grant{RoomAdmin: true, Room: "lobby", Name: "The app"}, time.Hour)
	for _, c := range []struct {
		path, token string
		want        int
	}{
		{"mute?room=lobby&identity=bob", r.token("lobby", "Grace"), http.StatusForbidden},
		{"mute?room=lobby&identity=bob", "", http.StatusUnauthorized},
		{"dance?room=lobby&identity=bob", admin, http.StatusBadRequest},
		{"remove?room=lobby&identity=bob", admin, http.StatusBadRequest},
		{"mute?room=lobby&identity=bob&source=nose", admin, http.StatusBadRequest},
		{"grant?room=lobby", admin, http.StatusBadRequest},
		{"grant?room=lobby&identity=bob&peer=p", admin, http.StatusBadRequest},
		{"grant?room=lobby&identity=nobody", admin, http.StatusNotFound},
		{"mute?room=lobby", admin, http.StatusOK},
		{"ask-unmute?room=lobby&identity=bob&source=camera", admin, http.StatusOK},
		{"lower-hand?room=lobby&peer=" + string(joined.Peer), admin, http.StatusOK},
		{"grant?room=lobby&identity=bob", admin, http.StatusOK},
	} {
		status, text, _ := e.request(http.MethodPost, "/api/v1/peers/"+c.path, c.token)
		var answer rest.ModerationAnswer
		if err := json.Unmarshal([]byte(text), &answer); status != c.want || err != nil || (status == http.StatusOK) != (len(answer.Done) == 1) {
			t.Errorf("%s is answered %d %s, want %d", c.path, status, text, c.want)
		}
	}
	want := `Bob: ACT_MUTE SOURCE_MICROPHONE by "The app"
Bob: ACT_ASK_UNMUTE SOURCE_CAMERA by "The app"
Bob: ACT_LOWER_HAND SOURCE_MICROPHONE by "The app"
Bob: ACT_GRANT SOURCE_MICROPHONE by "The app"`
	if said := n.said(); said != want {
		t.Errorf("the node was told\n%s\nwant\n%s", said, want)
	}
}

// permitted hears whether this client moderates from now on.
func (c *client) permitted(moderates bool) *wire.PermissionsChanged {
	c.t.Helper()
	changed := hear[*wire.PermissionsChanged](c)
	if changed.Permissions.Moderate != moderates {
		c.t.Errorf("told %+v, want moderate: %t", changed, moderates)
	}
	return changed
}

func (c *client) mayNotModerate() {
	c.t.Helper()
	c.say(&wire.Moderate{Act: wire.ActLowerHand, Peer: "p-nobody"})
	c.refusedWith("roomAdmin")
}

func TestATokenFromBeforeTheGrantWasTakenBackDoesNotModerate(t *testing.T) {
	r, n, e := lobby(t)
	other := r.signalingNode(nil)
	bob, _ := e.join("lobby", "Bob")
	update := func(moderates bool) *wire.PermissionsChanged {
		n.update("Bob", func(p *control.Peer) { p.Moderator = moderates })
		hear[*wire.PeerUpdated](bob)
		return bob.permitted(moderates)
	}
	granted := update(true)
	update(false)
	_ = bob.conn.CloseNow()
	bob, _ = other.resume(granted.Resume, 2)
	bob.permitted(false)
	bob.mayNotModerate()
}

func TestAGrantThatIsTakenBackWhileTheLinkIsAwayIsLost(t *testing.T) {
	_, n, e := lobby(t)
	bob, _ := e.joinWith("bob", runs)
	n.set(func() {
		for _, p := range n.peers {
			entry, _ := proto.Clone(p.entry).(*control.Peer)
			entry.Moderator = false
			p.entry = entry
		}
	})
	n.breakLinks()
	hear[*wire.Roster](bob)
	bob.permitted(false)
	bob.mayNotModerate()
}
