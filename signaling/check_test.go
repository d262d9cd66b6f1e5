package signaling

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/signaling/access"
)

// TestACheckHasARoomOfItsOwn: whoever may join a call may try the connection before it, in a room that nobody else is in.
func TestACheckHasARoomOfItsOwn(t *testing.T) {
	r := newRig(t)
	e := r.signalingNode(nil)
	if status, body, _ := e.request(http.MethodPost, "/api/v1/check", ""); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", status, body)
	}
	operator, err := r.keys.Mint("", access.Operator("root"), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if status, body, _ := e.request(http.MethodPost, "/api/v1/check", operator); status != http.StatusForbidden {
		t.Errorf("who may join no call: %d %s", status, body)
	}
	rooms := make(map[string]bool)
	refused := 0
	for range 2 * checkBurst {
		status, body, header := e.request(http.MethodPost, "/api/v1/check", r.token("lobby", "Ada"))
		if status == http.StatusServiceUnavailable {
			refused++
			continue
		}
		var answer struct{ Token string }
		if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK || header.Get("Cache-Control") != "no-store" {
			t.Fatalf("answered %d %s (%v)", status, body, err)
		}
		grant, err := r.keys.Verify(answer.Token)
		if err != nil {
			t.Fatal(err)
		}
		if grant.Room == "lobby" || rooms[string(grant.Room)] || grant.Identity == "Ada" || grant.MaxParticipants != checkPlaces || grant.RoomAdmin || grant.CanMessage || grant.CanWatch || time.Until(grant.Expires) > checkTokenLife+time.Minute {
			t.Errorf("the token grants %+v", grant)
		}
		rooms[string(grant.Room)] = true
	}
	if refused == 0 || len(rooms) < checkBurst {
		t.Errorf("%d were answered, %d refused", len(rooms), refused)
	}
}
