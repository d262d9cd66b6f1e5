package signaling

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/control"
	"github.com/holdfast-rtc/holdfast/internal/panics"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/signaling/access"
)

// fakeDrain is what a fake media node was told.
type fakeDrain struct {
	asked    *control.DrainRequest
	draining bool
	fail     bool
}

func (n *node) Drain(_ context.Context, request *control.DrainRequest) (*control.DrainReply, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if boot := request.GetBoot(); boot != "" && boot != string(n.boot) {
		return &control.DrainReply{Node: string(n.id), Boot: string(n.boot), Draining: n.drain.draining, WasDraining: n.drain.draining}, nil
	}
	n.drain.asked = request
	if n.drain.fail {
		return nil, status.Error(codes.Unavailable, "broken")
	}
	was := n.drain.draining
	n.drain.draining = !request.GetUndrain()
	return &control.DrainReply{Node: string(n.id), Boot: string(n.boot), Draining: n.drain.draining, Rooms: 2, Peers: 5, WasDraining: was}, nil
}

// TestAnOperatorDrains a node, and every mistake gets a sentence.
func TestAnOperatorDrains(t *testing.T) {
	r, one, _, e := lobbyAndSpare(t)
	admin := r.mint(access.Operator("operator"), generous)
	e.join("lobby", "Ada")
	path := "/api/v1/nodes/" + string(one.id) + "/drain"
	ask := func(method, path, body string, want int, says string) {
		t.Helper()
		got, text, _ := e.requestBody(method, path, admin, body)
		if got != want || !strings.Contains(text, says) {
			t.Errorf("%s %s %s: %d %s, want %d %s", method, path, body, got, text, want, says)
		}
	}
	if got, _, _ := e.request(http.MethodPost, path, ""); got != http.StatusUnauthorized {
		t.Errorf("without a token: %d", got)
	}
	ask("POST", "/api/v1/nodes/nobody/drain", "", 404, "there are "+string(one.id))
	ask("POST", path, `{"deadline":3}`, 400, "deadlineMs")
	ask("POST", path, `{"deadlineMs":-3}`, 400, "-3")
	ask("DELETE", path, "", 409, "not draining")
	ask("POST", path, `{"deadlineMs":1500,"keep":true}`, 200, `"rooms":2`)
	one.set(func() {
		if a := one.drain.asked; a.GetDeadlineMs() != 1500 || a.GetExit() || a.GetUndrain() {
			t.Errorf("the node was asked %v", a)
		}
	})
	ask("POST", path, "", 200, `"draining":true`)
	one.set(func() {
		if a := one.drain.asked; !a.GetExit() {
			t.Errorf("the node was asked %v", a)
		}
		one.drain.fail = true
	})
	ask("POST", path, "", 503, "did not take the order")
	one.set(func() { one.drain.fail = false })
	ask("DELETE", path, "", 200, `"draining":false`) // gossip has not told of the drain
	ask("DELETE", path, "", 409, "not draining")

	e.Hub().Stays("lobby", "no node has headroom")
	draining := r.views.View().Nodes[one.id]
	draining.Draining = true
	r.views.add(draining)
	ask("GET", path, "", 200, `"staying":[{"room":"lobby","reason":"no node has headroom"}]`)
	ask("POST", path, "", 409, "already")
	for id := range r.views.View().Nodes {
		if id != one.id {
			ask("POST", "/api/v1/nodes/"+string(id)+"/drain", "", 409, "last media node")
		}
	}
	e.Hub().Stays("lobby", "")
	ask("DELETE", path, "", 200, `"staying":[]`)
	r.views.mu.Lock()
	view := *r.views.view
	view.Gone = map[pin.BootID]cluster.Departure{"0-gone": cluster.DepartureLeft}
	r.views.view = &view
	r.views.mu.Unlock()
	ask("GET", path+"?boot=0-gone", "", 200, `"gone":"left"`)
}

// TestADrainOfAFormerProcess does not empty the one that was started in its place, which gossip has not told of.
func TestADrainOfAFormerProcess(t *testing.T) {
	r, one, _, e := lobbyAndSpare(t)
	admin := r.mint(access.Operator("operator"), generous)
	one.set(func() { one.boot = "1769000000001-" + pin.BootID(one.id) })
	for _, method := range []string{http.MethodPost, http.MethodDelete} {
		got, text, _ := e.requestBody(method, "/api/v1/nodes/"+string(one.id)+"/drain", admin, "")
		if got != http.StatusServiceUnavailable || !strings.Contains(text, "restarted just now") {
			t.Errorf("%s: %d %s", method, got, text)
		}
	}
	one.set(func() {
		if one.drain.asked != nil {
			t.Errorf("the new process took %v", one.drain.asked)
		}
	})
}

// TestADrainNamesTheRoomsOfAllSignalingNodes: each knows those of its own clients, and one that does not answer is named.
func TestADrainNamesTheRoomsOfAllSignalingNodes(t *testing.T) {
	r, one, _, asked := lobbyAndSpare(t)
	other := r.signalingNode(func(c *Config) { c.Node = "signaling-2" })
	lis := listen(t)
	stop := r.serve(func(ctx context.Context) error {
		return control.NewServer(r.key, panics.New(), r.log).Serve(ctx, lis, control.AnswerStaying(other.StayingRooms))
	})
	r.views.add(cluster.Node{ID: "signaling-1", Role: cluster.RoleSignaling, Control: "127.0.0.1:1"}) // who is asked, itself
	r.views.add(cluster.Node{ID: "signaling-2", Role: cluster.RoleSignaling, Control: lis.Addr().String()})
	r.placer.set("blue", one.pin(firstEpoch))
	asked.join("lobby", "Ada")
	other.join("lobby", "Alan")
	other.join("blue", "Grace")
	for _, e := range []*signalingNode{asked, other} {
		e.Hub().Stays("lobby", "no headroom")
		e.Hub().Stays("blue", "too large")
	}
	admin := r.mint(access.Operator("operator"), generous)
	sees := func(want string) {
		t.Helper()
		got, text, _ := asked.requestBody(http.MethodGet, "/api/v1/nodes/"+string(one.id)+"/drain", admin, "")
		if got != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%d %s, want %s", got, text, want)
		}
	}
	sees(`"staying":[{"room":"blue","reason":"too large"},{"room":"lobby","reason":"no headroom"}],"unreachable":[]`)
	stop()
	sees(`"staying":[{"room":"lobby","reason":"no headroom"}],"unreachable":["signaling-2"]`)
}
