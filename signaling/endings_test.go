package signaling

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// refused resumes on the signaling node and wants to be refused with the code.
func (e *signalingNode) refused(token string, attempt uint64, want wire.Code) {
	e.rig.t.Helper()
	c := e.dial()
	c.say(&wire.Resume{Resume: token, Attempt: attempt})
	if fault := hear[*wire.Error](c); fault.Code != want || fault.Retryable {
		e.rig.t.Errorf("the resume is answered %+v, want %s", fault, want)
	}
	if code, _ := c.closed(); code != websocket.StatusPolicyViolation {
		e.rig.t.Errorf("the resume was closed with %v", code)
	}
}

// resume resumes on the signaling node and wants to be let in.
func (e *signalingNode) resume(token string, attempt uint64) (*client, *wire.Resumed) {
	e.rig.t.Helper()
	c := e.dial()
	c.say(&wire.Resume{Resume: token, Attempt: attempt})
	return c, hear[*wire.Resumed](c)
}

func (r *rig) mint(g access.Grant, ttl time.Duration) string {
	r.t.Helper()
	token, err := r.keys.Mint("", g, ttl)
	if err != nil {
		r.t.Fatal(err)
	}
	return token
}

// noting sets what the store answers about notes.
func (p *fakePlacer) noting(fail error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noteFail = fail
}

func TestALeaveEndsTheResumeTokens(t *testing.T) {
	r := newRig(t)
	n := r.node("sfu-1")
	r.placer.set("lobby", n.pin(firstEpoch))
	e, other := r.signalingNode(nil), r.signalingNode(nil)
	ada, joined := e.join("lobby", "Ada")
	_ = ada.conn.CloseNow() // No leave: this is what resume tokens are for.
	ada, resumed := other.resume(joined.Resume, 2)
	ada.say(&wire.Leave{})
	if code, _ := ada.closed(); code != websocket.StatusNormalClosure {
		t.Fatalf("closed with %v", code)
	}
	for _, token := range []string{joined.Resume, resumed.Resume} {
		e.refused(token, 3, wire.CodeResumeExpired)
		other.refused(token, 9, wire.CodeResumeExpired)
	}
	if _, again := e.join("lobby", "Ada"); again.Peer == joined.Peer {
		t.Error("who joins again is the same peer")
	}
}

func TestALeaveIsNotedWhenTheStoreIsBack(t *testing.T) {
	r, _, e := lobby(t)
	ada, joined := e.join("lobby", "Ada")
	r.placer.noting(errors.New("down"))
	ada.say(&wire.Leave{})
	ada.closed()
	r.placer.noting(nil)
	testkit.Eventually(t, "the note", func() bool { return r.placer.noted(string(joined.Peer)) })
	e.refused(joined.Resume, 2, wire.CodeResumeExpired)
}

// TestWhoIsRemovedStaysOut moves the room to a node that has never heard of the removal.
func TestWhoIsRemovedStaysOut(t *testing.T) {
	r := newRig(t)
	one, two := r.node("sfu-1"), r.node("sfu-2")
	r.placer.set("lobby", one.pin(firstEpoch))
	e, other := r.signalingNode(nil), r.signalingNode(nil)
	admin := r.mint(access.Grant{RoomAdmin: true, Room: "lobby"}, time.Hour)
	// An earlier session of hers, of which no node knows any more.
	eve, before := e.join("lobby", "Eve")
	_ = eve.conn.CloseNow()
	one.set(func() { delete(one.peers, string(before.Peer)) })
	eve, joined := e.join("lobby", "Eve")
	bystander, seen := e.join("lobby", "Ada")
	if status, answer := other.remove("room=lobby&identity=eve", admin); status != http.StatusOK || !answer.Recorded {
		t.Fatalf("the removal is answered %d %+v", status, answer)
	}
	eve.closed()
	other.refused(joined.Resume, 2, wire.CodeKicked)
	one.stop()
	r.placer.set("lobby", two.pin(firstEpoch+1))
	for _, token := range []string{joined.Resume, before.Resume} {
		e.refused(token, 3, wire.CodeKicked)
		other.refused(token, 4, wire.CodeKicked)
	}
	e.stop() // who noted it is gone, and the socket of the bystander
	bystander.closed()
	other.refused(joined.Resume, 5, wire.CodeKicked)
	other.resume(seen.Resume, 2)
	// It is no ban: a new session of hers is as good as any.
	eve, again := other.join("lobby", "Eve")
	_ = eve.conn.CloseNow()
	other.resume(again.Resume, 2)
}

// TestARemovalOutlivesTheStoresMemory empties the store; the room's node is gone too.
func TestARemovalOutlivesTheStoresMemory(t *testing.T) {
	r := newRig(t)
	one, two := r.node("sfu-1"), r.node("sfu-2")
	r.placer.set("lobby", one.pin(firstEpoch))
	e, other := r.signalingNode(nil), r.signalingNode(nil)
	eve, joined := e.join("lobby", "Eve")
	e.remove("room=lobby&identity=eve", r.mint(access.Grant{RoomAdmin: true, Room: "lobby"}, time.Hour))
	eve.closed()
	one.stop()
	r.placer.set("lobby", two.pin(firstEpoch+1))
	r.placer.mu.Lock()
	clear(r.placer.notes)
	r.placer.mu.Unlock()
	e.endings.RewriteRemovals(t.Context())
	other.refused(joined.Resume, 2, wire.CodeKicked)
}

func TestAPeerIsRemovedAloneOfItsIdentity(t *testing.T) {
	r, _, two, e := lobbyAndSpare(t)
	phone, first := e.join("lobby", "Eve")
	laptop, second := e.join("lobby", "Eve")
	admin := r.mint(access.Grant{RoomAdmin: true, Room: "lobby"}, time.Hour)
	if status, answer := e.remove("room=lobby&peer="+string(first.Peer), admin); status != http.StatusOK {
		t.Fatalf("the removal is answered %d %+v", status, answer)
	}
	phone.closed()
	_ = laptop.conn.CloseNow()
	r.placer.set("lobby", two.pin(firstEpoch+1))
	e.refused(first.Resume, 2, wire.CodeKicked)
	e.resume(second.Resume, 2)
}

// TestAResumeIsJudgedWhenTheStoreIsBack: a running call does not wait for the store.
func TestAResumeIsJudgedWhenTheStoreIsBack(t *testing.T) {
	r, one, two, e := lobbyAndSpare(t)
	eve, joined := e.join("lobby", "Eve")
	_, bystander := e.join("lobby", "Ada")
	admin := r.mint(access.Grant{RoomAdmin: true, Room: "lobby"}, time.Hour)
	e.remove("room=lobby&identity=eve", admin)
	eve.closed()
	one.stop()
	r.placer.set("lobby", two.pin(firstEpoch+1))
	r.placer.noting(errors.New("down"))
	eve, _ = e.resume(joined.Resume, 2)
	ada, _ := e.resume(bystander.Resume, 2)
	r.placer.noting(nil)
	_, heard := eve.closed()
	if bye, ok := heard[len(heard)-1].(*wire.Bye); !ok || bye.Code != wire.CodeKicked {
		t.Errorf("the last word is %+v", heard[len(heard)-1])
	}
	testkit.Eventually(t, "the end of the peer", func() (gone bool) {
		two.set(func() { gone = two.peers[string(joined.Peer)] == nil })
		return gone
	})
	ada.say(&wire.Ping{T: 1})
	for {
		if _, ok := ada.next().(*wire.Pong); ok {
			break
		}
	}
}

// TestWhoIsJudgedMayChangeItsName is for the race detector: the judge asks beside the session's loop.
func TestWhoIsJudgedMayChangeItsName(t *testing.T) {
	r, n, e := lobby(t)
	ada, joined := e.joinWith("ada", func(g *access.Grant) { g.CanRename = true })
	_ = ada.conn.CloseNow()
	r.placer.noting(errors.New("down"))
	ada, _ = e.resume(joined.Resume, 2)
	for _, name := range []string{"Grace", "Ada", "Eve"} {
		ada.say(&wire.Rename{Name: name})
		testkit.Eventually(t, "the new name", func() bool { return strings.Contains(n.said(), "renames "+name) })
	}
	r.placer.noting(nil)
}

// TestASessionThatMissedItsRemovalIsFound: its node died before it was told.
func TestASessionThatMissedItsRemovalIsFound(t *testing.T) {
	r, one, two, e := lobbyAndSpare(t)
	eve, joined := e.join("lobby", "Eve")
	notes := map[string]string{"ended/" + string(joined.Peer): "removed", "removed/eve": strconv.FormatInt(time.Now().UnixMilli(), 10)}
	if err := r.placer.Note(t.Context(), "lobby", notes, time.Hour); err != nil {
		t.Fatal(err)
	}
	one.stop()
	r.placer.set("lobby", two.pin(firstEpoch+1))
	e.Hub().Moved(t.Context(), "lobby", two.pin(firstEpoch+1))
	_, heard := eve.closed()
	if bye, ok := heard[len(heard)-1].(*wire.Bye); !ok || bye.Code != wire.CodeKicked {
		t.Errorf("the last word is %+v", heard[len(heard)-1])
	}
}

func TestResumeTokensEndWithTheirAccessToken(t *testing.T) {
	r, _, strict := lobbyWith(t, func(c *Config) { c.ResumeGrace = 0 })
	lenient := r.signalingNode(func(c *Config) { c.ResumeGrace = time.Hour })
	// Ended, and still good at the door: clocks may differ.
	token := r.mint(access.Everything("ada", "lobby"), -10*time.Second)
	for e, want := range map[*signalingNode]bool{strict: false, lenient: true} {
		c := e.dial()
		c.say(&wire.Join{Token: token})
		joined := hear[*wire.Joined](c)
		_ = c.conn.CloseNow()
		if want {
			strict.resume(joined.Resume, 2) // Who let it in decides.
		} else {
			lenient.refused(joined.Resume, 2, wire.CodeResumeExpired)
		}
	}
}

func TestResumeTokensEndWithTheirKey(t *testing.T) {
	r, _, e := lobby(t)
	ada, joined := e.join("lobby", "Ada")
	_ = ada.conn.CloseNow()
	for name, keys := range map[string]string{
		"withdrawn": "APIother:" + apiSecret,
		"replaced":  apiKey + ":00000000000000000000000000000000",
	} {
		ring, err := access.ParseKeyring(keys)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			after := *r
			after.t, after.keys = t, ring
			after.signalingNode(nil).refused(joined.Resume, 2, wire.CodeResumeExpired)
		})
	}
	both, err := access.ParseKeyring("APInew:" + apiSecret + "," + apiKey + ":" + apiSecret)
	if err != nil {
		t.Fatal(err)
	}
	r.keys = both
	r.signalingNode(nil).resume(joined.Resume, 2)
}

// A leave is noted, and no removal holds for longer than a day, though the store's clock is wrong for a while.
func TestEndingsHoldThoughTheStoresClockWasAhead(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"minutes": 10 * time.Minute, "months": 100 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			r, one, e := lobby(t)
			admin := r.mint(access.Grant{RoomAdmin: true, Room: "lobby"}, time.Hour)
			lost := func(who string) string {
				c, joined := e.join("lobby", who)
				_ = c.conn.CloseNow()
				one.set(func() { delete(one.peers, string(joined.Peer)) }) // it is at no node, and may resume
				return joined.Resume
			}
			r.placer.setClock(ahead)
			ada, joined := e.join("lobby", "Ada")
			ada.say(&wire.Leave{})
			ada.closed()
			e.refused(joined.Resume, 2, wire.CodeResumeExpired)
			eve, mallory := lost("Eve"), lost("Mallory")
			e.remove("room=lobby&identity=eve", admin)
			e.refused(eve, 2, wire.CodeKicked)

			r.placer.setClock(0)
			e.remove("room=lobby&identity=mallory", admin)
			e.refused(mallory, 2, wire.CodeKicked)
			if ahead > access.ResumeLife {
				c, again := e.join("lobby", "Eve")
				_ = c.conn.CloseNow()
				e.resume(again.Resume, 2)
			}
		})
	}
}
