package signaling

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/moderation"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// remove asks the signaling node to remove somebody.
func (e *signalingNode) remove(query, token string) (int, moderation.Removal) {
	e.rig.t.Helper()
	status, text, _ := e.request(http.MethodDelete, "/api/v1/peers?"+query, token)
	var answer moderation.Removal
	_ = json.Unmarshal([]byte(text), &answer) // A fault is no such answer.
	return status, answer
}

func TestAnOperatorRemovesSomebody(t *testing.T) {
	r := newRig(t)
	n := r.node("sfu-1")
	r.placer.set("lobby", n.pin(firstEpoch))
	e, other := r.signalingNode(nil), r.signalingNode(nil)
	grant := func(g access.Grant) string {
		token, err := r.keys.Mint("", g, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	admin := grant(access.Grant{RoomAdmin: true, Room: "lobby"})
	ada, joined := e.join("lobby", "Ada")
	for _, c := range []struct {
		query, token string
		want         int
	}{
		{"room=lobby&identity=ada", r.token("lobby", "Grace"), http.StatusForbidden},
		{"room=lobby&identity=ada", grant(access.Grant{RoomAdmin: true, Room: "attic"}), http.StatusForbidden},
		{"room=lobby&identity=ada", grant(access.Grant{RoomAdmin: true}), http.StatusForbidden},
		{"room=lobby&identity=nobody", grant(access.Operator("root")), http.StatusNotFound},
		{"room=lobby&identity=ada", "nonsense", http.StatusUnauthorized},
		{"identity=ada", admin, http.StatusBadRequest},
		{"room=lobby", admin, http.StatusBadRequest},
		{"room=lobby&identity=ada&peer=p", admin, http.StatusBadRequest},
		{"room=lobby&identity=nobody", admin, http.StatusNotFound},
	} {
		if status, answer := other.remove(c.query, c.token); status != c.want || len(answer.Removed) > 0 {
			t.Errorf("%s is answered %d %+v, want %d", c.query, status, answer, c.want)
		}
	}
	// Another signaling node than the one that holds the socket is asked.
	status, answer := other.remove("room=lobby&identity=ada", admin)
	if status != http.StatusOK || len(answer.Removed) != 1 || answer.Removed[0] != (moderation.RemovedPeer{Peer: string(joined.Peer), Node: "sfu-1"}) {
		t.Fatalf("answered %d %+v", status, answer)
	}
	if bye := hear[*wire.Bye](ada); bye.Code != wire.CodeKicked || bye.Message == "" {
		t.Errorf("told %+v", bye)
	}
	if code, _ := ada.closed(); code != websocket.StatusNormalClosure {
		t.Errorf("closed with %v", code)
	}
	back := other.dial()
	back.say(&wire.Resume{Resume: joined.Resume, Attempt: 2})
	if refused := hear[*wire.Error](back); refused.Code != wire.CodeKicked || refused.Retryable {
		t.Errorf("a resume is answered %+v", refused)
	}
	if code, _ := back.closed(); code != websocket.StatusPolicyViolation {
		t.Errorf("the resume was closed with %v", code)
	}
	n.stop()
	if status, answer := e.remove("room=lobby&identity=ada", admin); status != http.StatusServiceUnavailable || len(answer.Unreachable) != 1 {
		t.Errorf("with its node away: %d %+v", status, answer)
	}
}

// goodbye hears until a client is told that its session is over.
func (c *client) goodbye() *wire.Bye {
	c.t.Helper()
	for {
		if bye, ok := c.next().(*wire.Bye); ok {
			return bye
		}
	}
}

// offlineAt waits until a signaling node says that the users are offline. No lease lapses in the time of this test.
func (e *signalingNode) offlineAt(users ...string) {
	e.rig.t.Helper()
	testkit.Eventually(e.rig.t, "the removed to be offline", func() bool {
		_, answer := e.presence("?user=" + strings.Join(users, "&user="))
		for _, user := range answer.Users {
			if user.State != "offline" {
				return false
			}
		}
		return true
	})
}

// TestARemovalShowsInPresenceAtOnce: at either signaling node, also of somebody whose signaling node has died.
func TestARemovalShowsInPresenceAtOnce(t *testing.T) {
	r := peopled(t)
	one, two, dies := r.signalingNode(nil), r.signalingNode(nil), r.signalingNode(nil)
	admin := r.mint(access.Grant{RoomAdmin: true, Room: "lobby"}, time.Hour)
	ada, _ := two.join("lobby", "Ada")
	bob, _ := dies.join("lobby", "Bob")
	testkit.Eventually(t, "both to be online", func() bool {
		_, answer := one.presence("?user=ada&user=bob")
		return answer.Users[0].State == "online" && answer.Users[1].State == "online"
	})
	if status, answer := one.remove("room=lobby&identity=ada", admin); status != http.StatusOK || len(answer.Removed) != 1 {
		t.Fatalf("answered %d %+v", status, answer)
	}
	one.offlineAt("ada")
	if bye := ada.goodbye(); bye.Code != wire.CodeKicked {
		t.Errorf("told %+v", bye)
	}
	_ = bob.conn.CloseNow()
	dies.stop()
	if status, answer := one.remove("room=lobby&identity=bob", admin); status != http.StatusOK || len(answer.Removed) != 1 {
		t.Fatalf("answered %d %+v", status, answer)
	}
	two.offlineAt("bob")
}

// TestAnOperatorEndsACall for everybody: on both signaling nodes, for who resumes later, and not for who joins later.
func TestAnOperatorEndsACall(t *testing.T) {
	r := peopled(t)
	one, two := r.signalingNode(nil), r.signalingNode(nil)
	admin, other := r.mint(access.Grant{RoomAdmin: true, Room: "lobby"}, time.Hour), r.mint(access.Grant{RoomAdmin: true, Room: "attic"}, time.Hour)
	ada, _ := one.join("lobby", "Ada")
	bob, _ := two.join("lobby", "Bob")
	lost, eve := two.join("lobby", "Eve")
	_ = lost.conn.CloseNow()
	const path = "/api/v1/rooms/lobby"
	two.refusedAs(http.StatusForbidden, wire.CodeNotAllowed, http.MethodDelete, path, other, "")
	two.refusedAs(http.StatusForbidden, wire.CodeNotAllowed, http.MethodDelete, path, r.token("lobby", "Bob"), "")
	status, text, _ := two.request(http.MethodDelete, path, admin)
	var answer moderation.Removal
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusOK || len(answer.Removed) < 2 || !answer.Recorded {
		t.Fatalf("answered %d %s (%v)", status, text, err)
	}
	for _, c := range []*client{ada, bob} {
		if bye := c.goodbye(); bye.Code != wire.CodeCallEnded {
			t.Errorf("told %+v", bye)
		}
		c.closed()
	}
	one.offlineAt("ada", "bob")
	two.refusedAs(http.StatusNotFound, wire.CodeUnknownRoom, http.MethodDelete, "/api/v1/rooms/cellar", r.mint(access.Operator("root"), time.Hour), "")
	// The media node has forgotten the room, so only the store knows that this session is over.
	back := one.dial()
	back.say(&wire.Resume{Resume: eve.Resume, Attempt: 2})
	if refused := hear[*wire.Error](back); refused.Code != wire.CodeCallEnded || refused.Retryable {
		t.Errorf("a resume is answered %+v", refused)
	}
	back.closed()
	again, _ := one.join("lobby", "Ada")
	again.hearsNothing()
}

// TestAHostEndsACall for everybody, from its own socket; who runs no room cannot.
func TestAHostEndsACall(t *testing.T) {
	r := peopled(t)
	one, two := r.signalingNode(nil), r.signalingNode(nil)
	ada, _ := one.joinWith("ada", runs)
	bob, eve := two.join("lobby", "Bob")
	hear[*wire.PeerJoined](ada)
	bob.say(&wire.Moderate{Act: wire.ActEndCall})
	bob.refusedWith("roomAdmin")
	ada.say(&wire.Moderate{Act: wire.ActEndCall})
	for _, c := range []*client{ada, bob} {
		if bye := c.goodbye(); bye.Code != wire.CodeCallEnded {
			t.Errorf("told %+v", bye)
		}
	}
	back := one.dial()
	back.say(&wire.Resume{Resume: eve.Resume, Attempt: 2})
	if refused := hear[*wire.Error](back); refused.Code != wire.CodeCallEnded || refused.Retryable {
		t.Errorf("a resume is answered %+v", refused)
	}
}

// TestNamesOfEveryScript: a room and an identity with wide spaces and joiners are as good as others, and each has one form, whichever a token, a
// client or a request writes.
func TestNamesOfEveryScript(t *testing.T) {
	const wide, room = "会議\u3000می\u200cخواهم", "会議 می\u200cخواهم"
	const family = "👩\u200d👧"
	r := newRig(t)
	r.placer.set(room, r.node("sfu-1").pin(firstEpoch))
	e := r.signalingNode(nil)
	enter := func(token, asked string) (*client, *wire.Joined) {
		c := e.dial()
		c.say(&wire.Join{Token: token, Room: asked})
		return c, hear[*wire.Joined](c)
	}
	ada, first := enter(r.token(wide, family+"\u3000ada\u200d"), room)
	_, second := enter(r.token("", "bob"), wide)
	for _, joined := range []*wire.Joined{first, second} {
		if joined.Room != room {
			t.Errorf("joined %+q", joined.Room)
		}
	}
	if want := family + " ada"; first.Identity != want || len(second.Roster) != 2 || first.Name != want {
		t.Errorf("she is %+q, shown as %+q, and he sees %+v", first.Identity, first.Name, second.Roster)
	}
	operator, err := r.keys.Mint("", access.Operator("root"), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	query := url.Values{"room": {wide}, "identity": {family + "\u3000ada"}}
	if status, removal := e.remove(query.Encode(), operator); status != http.StatusOK || len(removal.Removed) != 1 {
		t.Errorf("her removal: %d %+v", status, removal)
	}
	hear[*wire.PeerJoined](ada)
	if bye := hear[*wire.Bye](ada); bye.Code != wire.CodeKicked {
		t.Errorf("she hears %+v", bye)
	}
}
