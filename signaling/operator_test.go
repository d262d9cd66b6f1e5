package signaling

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/access"
	"github.com/holdfast-rtc/holdfast/signaling/operator"
)

// TestOperatorsSeeTheCluster asks for what the operator's page shows while somebody is in a room.
func TestOperatorsSeeTheCluster(t *testing.T) {
	r, _, e := lobby(t)
	e.join("lobby", "Ada")
	admin, err := r.keys.Mint("", access.Operator("root"), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(path string, into any) {
		t.Helper()
		status, body, _ := e.get("/api/v1"+path, admin)
		if status != http.StatusOK {
			t.Fatalf("%s says %d %s", path, status, body)
		}
		if err := json.Unmarshal([]byte(body), into); err != nil {
			t.Fatalf("%s says %s: %v", path, body, err)
		}
	}
	var page operator.Page
	ask("/room-list?sort=people&order=desc&limit=10&search=LOB", &page)
	if page.Total != 1 || page.Found != 1 || page.Rooms[0].Room != "lobby" || page.Rooms[0].Node != "sfu-1" || page.Rooms[0].People != 1 {
		t.Errorf("the list of rooms is %+v", page)
	}
	var around struct {
		Nodes  []ring.NodeID
		Shares []float64
		Owners []int
	}
	ask("/ring", &around)
	if around.Nodes == nil || around.Shares == nil || around.Owners == nil || len(around.Nodes) != 0 {
		t.Errorf("an empty ring is %+v", around)
	}
	var overview struct{ Node, Version string }
	ask("/overview", &overview)
	if overview.Node != string(e.config.Node) || overview.Version == "" {
		t.Errorf("the overview is %+v", overview)
	}
	for _, bad := range []string{"sort=size", "order=up", "limit=0", "limit=201", "offset=-1", "offset=x"} {
		if status, body, _ := e.get("/api/v1/room-list?"+bad, admin); status != http.StatusBadRequest || !strings.Contains(body, `"code":"bad_message"`) {
			t.Errorf("?%s is answered %d %s", bad, status, body)
		}
	}
	if status, body, _ := e.get("/api/v1/loads?node="+strings.Repeat("x&node=", operator.MaxAsked), admin); status != http.StatusBadRequest {
		t.Errorf("a question about too many nodes is answered %d %s", status, body)
	}
}
