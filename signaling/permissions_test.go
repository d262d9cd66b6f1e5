package signaling

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// joinWith joins the lobby with a grant that was changed.
func (e *signalingNode) joinWith(identity string, change func(*access.Grant)) (*client, *wire.Joined) {
	e.rig.t.Helper()
	grant := access.Everything(identity, "lobby")
	change(&grant)
	c := e.dial()
	c.say(&wire.Join{Token: e.rig.mint(grant, time.Hour)})
	return c, hear[*wire.Joined](c)
}

func (c *client) refusedWith(want string) {
	c.t.Helper()
	fault := hear[*wire.Error](c)
	if fault.Code != wire.CodeNotAllowed || !strings.Contains(fault.Message, want) || !strings.HasSuffix(fault.Message, "another token.") {
		c.t.Errorf("refused with %+v, want a word of %s", fault, want)
	}
}

func TestWhatATokenDoesNotAllowIsRefused(t *testing.T) {
	r := newRig(t)
	n := r.node("sfu-1")
	r.placer.set("lobby", n.pin(firstEpoch))
	e, other := r.signalingNode(nil), r.signalingNode(nil)
	ada, joined := e.joinWith("ada", func(g *access.Grant) { g.Sources, g.CanPublishData = access.Microphone|access.Screen, false })
	want := wire.Permissions{Publish: true, Subscribe: true, Sources: []wire.Source{wire.SourceMicrophone, wire.SourceScreen}}
	if !reflect.DeepEqual(joined.Permissions, want) {
		t.Errorf("told %+v, want %+v", joined.Permissions, want)
	}
	wants := func(c *client) {
		t.Helper()
		c.say(&wire.Say{Text: "hello"})
		c.refusedWith("canPublishData")
		c.say(&wire.Mute{Source: wire.SourceCamera, Muted: false})
		c.refusedWith("canPublishSources")
		c.say(&wire.Mute{Source: wire.SourceCamera, Muted: true})
		c.say(&wire.Mute{Source: wire.SourceScreen, Muted: false})
		c.say(&wire.Ping{T: 1})
		hear[*wire.Pong](c) // What it may do is not answered.
	}
	wants(ada)
	_ = ada.conn.CloseNow()
	ada, _ = other.resume(joined.Resume, 2) // The resume token allows no more.
	wants(ada)
	var attaches []*control.Attach
	n.set(func() { attaches = append(attaches, n.attaches...) })
	for _, a := range attaches {
		if a.GetSources() != 1<<0|1<<2 || !a.GetPeer().GetVideoMuted() || a.GetPeer().GetAudioMuted() || a.GetPeer().GetHidden() {
			t.Errorf("attached with %v", a)
		}
	}
	if _, everything := e.join("lobby", "Grace"); everything.Permissions.Sources != nil || !everything.Permissions.Chat {
		t.Errorf("who may do everything is told %+v", everything.Permissions)
	}
}

func TestWhoMayChangesItsName(t *testing.T) {
	r, one, two, e := lobbyAndSpare(t)
	bob, joined := e.join("lobby", "Bob")
	if joined.Permissions.Rename {
		t.Error("a token without canUpdateOwnMetadata lets its holder change its name")
	}
	bob.say(&wire.Rename{Name: "Ada"})
	bob.refusedWith("canUpdateOwnMetadata")
	_ = bob.conn.CloseNow()
	ada, joined := e.joinWith("ada", func(g *access.Grant) {
		g.CanRename, g.Metadata, g.Attributes = true, "seven", map[string]string{"team": "blue"}
	})
	if !joined.Permissions.Rename {
		t.Error("who may change its name is not told")
	}
	own := joined.Roster[slices.IndexFunc(joined.Roster, func(p wire.Peer) bool { return p.Peer == joined.Peer })]
	if own.Metadata != "seven" || own.Attributes["team"] != "blue" {
		t.Errorf("the roster has %+v", own)
	}
	ada.say(&wire.Rename{Name: "\u200b"})
	if fault := hear[*wire.Error](ada); fault.Code != wire.CodeBadMessage {
		t.Errorf("a name of nothing is answered %+v", fault)
	}
	ada.say(&wire.Rename{Name: "Grace\u202e"})
	testkit.Eventually(t, "the new name", func() bool { return strings.Contains(one.said(), "renames Grace (self-chosen)") })
	r.placer.set("lobby", two.pin(firstEpoch+1))
	e.Hub().Moved(t.Context(), "lobby", two.pin(firstEpoch+1))
	hear[*wire.Restart](ada)
	two.set(func() {
		if got := two.attaches[0].GetPeer().GetName(); got != "Grace (self-chosen)" {
			t.Errorf("the next node is told %q", got)
		}
		if got := two.attaches[0].GetPeer(); got.GetMetadata() != "seven" || got.GetAttributes()["team"] != "blue" {
			t.Errorf("the next node is told %v", got)
		}
	})
}

func TestTheNodeIsToldWhoIsHidden(t *testing.T) {
	r, one, two, e := lobbyAndSpare(t)
	spy, joined := e.joinWith("spy", func(g *access.Grant) { g.Hidden, g.CanPublish, g.CanPublishData = true, false, false })
	if joined.Permissions.Publish || joined.Permissions.Chat || !joined.Permissions.Subscribe {
		t.Errorf("told %+v", joined.Permissions)
	}
	spy.say(&wire.Say{Text: "boo"})
	spy.refusedWith("canPublishData")
	r.placer.set("lobby", two.pin(firstEpoch+1))
	e.Hub().Moved(t.Context(), "lobby", two.pin(firstEpoch+1))
	hear[*wire.Restart](spy)
	for _, n := range []*node{one, two} {
		n.set(func() {
			for _, a := range n.attaches {
				if !a.GetPeer().GetHidden() || a.GetCanPublish() || len(a.GetExpected()) > 0 {
					t.Errorf("attached to %s with %v", n.id, a)
				}
			}
		})
	}
}

func TestWhereItIsDemandedOnlyRoomCreateOpensARoom(t *testing.T) {
	r := newRig(t)
	n := r.node("sfu-1")
	e := r.signalingNode(func(c *Config) { c.DemandRoomCreate = true })
	guest := r.token("lobby", "Ada")
	refused := func() *wire.Error {
		t.Helper()
		c := e.dial()
		c.say(&wire.Join{Token: guest})
		return hear[*wire.Error](c)
	}
	if fault := refused(); fault.Code != wire.CodeNotAllowed || !strings.Contains(fault.Message, "roomCreate") {
		t.Errorf("a room that is not open: %+v", fault)
	}
	r.placer.set("attic", n.pin(firstEpoch)) // another room
	if fault := refused(); fault.Code != wire.CodeNotAllowed {
		t.Errorf("another room is open: %+v", fault)
	}
	r.placer.mu.Lock()
	r.placer.fail = errors.New("down")
	r.placer.mu.Unlock()
	if fault := refused(); fault.Code != wire.CodeStoreUnavailable || !fault.Retryable {
		t.Errorf("the store does not answer: %+v", fault)
	}
	r.placer.mu.Lock()
	r.placer.fail = nil
	r.placer.pins[ring.RoomID("lobby")] = n.pin(firstEpoch)
	r.placer.mu.Unlock()
	ada, joined := e.join("lobby", "Ada")
	_ = ada.conn.CloseNow()
	testkit.Eventually(t, "the end of the session", func() bool { return len(e.Hub().PinnedTo(n.boot)) == 0 })
	ada, _ = e.resume(joined.Resume, 2)
	_ = ada.conn.CloseNow()
	testkit.Eventually(t, "the end of the session", func() bool { return len(e.Hub().PinnedTo(n.boot)) == 0 })
	r.placer.mu.Lock()
	delete(r.placer.pins, "lobby")
	r.placer.mu.Unlock()
	e.refused(joined.Resume, 3, wire.CodeResumeExpired)
	r.signalingNode(nil).refused("hfr2.e30.e30", 2, wire.CodeBadToken)
}

func TestRoomCreateOpensARoomWhereItIsDemanded(t *testing.T) {
	r := newRig(t)
	n := r.node("sfu-1")
	r.placer.set("lobby", n.pin(firstEpoch)) // as it is once it is placed
	e := r.signalingNode(func(c *Config) { c.DemandRoomCreate = true })
	e.joinWith("host", func(g *access.Grant) { g.RoomCreate = true })
	e.join("lobby", "Ada") // Somebody is here already.
	r.placer.mu.Lock()
	defer r.placer.mu.Unlock()
	if r.placer.reads != 0 {
		t.Errorf("the store was asked %d times whether the room is open", r.placer.reads)
	}
}
