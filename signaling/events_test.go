package signaling

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/events"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

// oneEvent is a store with one event, unless it is away.
type oneEvent struct{ away bool }

func (l *oneEvent) Events(_ context.Context, after string, _ int) (found []events.Event, last string, err error) {
	if l.away {
		return nil, after, errors.New("away")
	}
	if after == "7-0" {
		return nil, after, nil
	}
	return []events.Event{{ID: "7-0", Kind: events.RoomOpened, Room: "hall"}}, "7-0", nil
}

func TestOperatorsReadEvents(t *testing.T) {
	r := newRig(t)
	log := &oneEvent{}
	r.events = log
	e := r.signalingNode(nil)
	operator := r.mint(access.Operator("operator"), time.Hour)
	status, body, _ := e.get("/api/v1/events?since=9000h", operator)
	var answer struct{ Events []events.Event }
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK || len(answer.Events) != 1 {
		t.Fatalf("%d %s", status, body)
	}
	if status, body, _ := e.get("/api/v1/events?since=yesterday", operator); status != http.StatusBadRequest {
		t.Errorf("%d %s", status, body)
	}
	if status, body, _ := e.get("/api/v1/events", r.mint(access.Grant{Room: "hall"}, time.Hour)); status != http.StatusForbidden {
		t.Errorf("%d %s", status, body)
	}
	log.away = true
	if status, body, _ := e.get("/api/v1/events", operator); status != http.StatusServiceUnavailable {
		t.Errorf("%d %s", status, body)
	}
}

// GET /nodes says which build each node runs, and that they differ.
func TestMixedVersions(t *testing.T) {
	r := newRig(t)
	e := r.signalingNode(nil)
	operator := r.mint(access.Operator("operator"), time.Hour)
	for _, c := range []struct {
		versions [2]string
		mixed    bool
	}{{[2]string{"0.1.0", "0.1.0"}, false}, {[2]string{"0.1.0", "0.2.0"}, true}} {
		r.views.add(cluster.Node{ID: "one", Role: cluster.RoleSFU, Version: c.versions[0]})
		r.views.add(cluster.Node{ID: "two", Role: cluster.RoleSFU, Version: c.versions[1]})
		_, body, _ := e.get("/api/v1/nodes", operator)
		var answer struct {
			Nodes         []struct{ Node, Version string }
			MixedVersions bool
		}
		if err := json.Unmarshal([]byte(body), &answer); err != nil || len(answer.Nodes) != 2 || answer.Nodes[1].Version != c.versions[1] || answer.MixedVersions != c.mixed {
			t.Errorf("%v: %s", c.versions, body)
		}
	}
}
