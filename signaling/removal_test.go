package signaling

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/coder/websocket"

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
