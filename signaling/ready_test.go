package signaling

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/readiness"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

func TestCutOff(t *testing.T) {
	heard := cluster.Node{Role: cluster.RoleSFU}
	silent := cluster.Node{Role: cluster.RoleSFU, Unreachable: true}
	dead := cluster.Node{Role: cluster.RoleSFU, Unreachable: true, Suspect: true}
	beating := cluster.Node{Role: cluster.RoleSFU, Suspect: true}
	other := cluster.Node{Role: cluster.RoleSignaling}
	for name, c := range map[string]struct {
		nodes []cluster.Node
		want  bool
	}{
		"there is no media node":             {[]cluster.Node{other}, false},
		"all are heard":                      {[]cluster.Node{heard, heard, other}, false},
		"one is heard":                       {[]cluster.Node{silent, heard, other}, false},
		"one that gossip gives up is heard":  {[]cluster.Node{silent, beating}, false},
		"none is heard":                      {[]cluster.Node{silent, silent, other}, true},
		"none is heard, and gossip gave one": {[]cluster.Node{silent, dead}, true},
		"gossip has given up all":            {[]cluster.Node{dead, dead, other}, false},
	} {
		view := &cluster.View{Nodes: map[ring.NodeID]cluster.Node{}}
		for i, node := range c.nodes {
			if node.Role == cluster.RoleSignaling {
				continue
			}
			view.Nodes[ring.NodeID(string(rune('a'+i)))] = node
		}
		if got := cutOff(view); got != c.want {
			t.Errorf("%s: cut off %t", name, got)
		}
	}
}

// TestASignalingNodeThatIsCutOffSendsItsClientsOn, but only where another one is ready for them.
func TestASignalingNodeThatIsCutOffSendsItsClientsOn(t *testing.T) {
	r := newRig(t)
	n := r.node("sfu-1")
	r.placer.set("lobby", n.pin(firstEpoch))
	var ready atomic.Bool
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		asked.Add(1)
		if q.URL.Path != "/readyz" || !ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer other.Close()
	second := r.signalingNode(nil)
	cut := *r
	cut.views = newFakeViews()
	first := cut.signalingNode(func(c *Config) { c.CutOffAfter = 10 * time.Millisecond })
	old, joined := first.join("lobby", "Ada")

	cut.views.add(cluster.Node{ID: "signaling-1", Role: cluster.RoleSignaling, HTTP: first.addr}) // itself
	cut.views.add(cluster.Node{ID: "signaling-2", Role: cluster.RoleSignaling, HTTP: strings.TrimPrefix(other.URL, "http://")})
	cut.views.add(cluster.Node{ID: "sfu-1", Role: cluster.RoleSFU, Unreachable: true})
	testkit.Eventually(t, "question to the other node", func() bool { return asked.Load() > 1 })
	if status, body, _ := first.get("/readyz", ""); status != http.StatusServiceUnavailable || !strings.Contains(body, "no media node is heard") {
		t.Errorf("readyz says %d %s", status, body)
	}
	newcomer := first.dial()
	newcomer.say(&wire.Join{Token: r.token("lobby", "Grace")})
	if fault := hear[*wire.Error](newcomer); fault.Code != wire.CodeNotReady || !fault.Retryable {
		t.Errorf("a newcomer heard %+v", fault)
	}
	old.say(&wire.Ping{T: 1})
	hear[*wire.Pong](old) // It has stayed: there is nowhere to go.

	ready.Store(true)
	if code, _ := old.closed(); code != websocket.StatusServiceRestart {
		t.Fatalf("closed with %v", code)
	}
	ada := second.dial()
	ada.say(&wire.Resume{Resume: joined.Resume, Attempt: 2})
	if m := hear[*wire.Resumed](ada); m.Node != "sfu-1" {
		t.Fatalf("resumed %+v", m)
	}

	heard := cluster.Node{ID: "sfu-1", Role: cluster.RoleSFU}
	cut.views.mu.Lock()
	cut.views.view = &cluster.View{Nodes: map[ring.NodeID]cluster.Node{"sfu-1": heard}, Signaling: map[ring.NodeID]cluster.Node{}, Settled: true}
	cut.views.mu.Unlock()
	testkit.Eventually(t, "readiness", func() bool {
		status, _, _ := first.get("/readyz", "")
		return status == http.StatusOK
	})
	first.join("lobby", "Grace")
}

// TestOneMediaNodeThatIsOnlyUnheardHere: its people go to a signaling node that hears it, and nobody else does.
func TestOneMediaNodeThatIsOnlyUnheardHere(t *testing.T) {
	r := newRig(t)
	reached, unreached := r.node("sfu-1"), r.node("sfu-2")
	r.placer.set("lobby", reached.pin(firstEpoch))
	r.placer.set("attic", unreached.pin(firstEpoch))
	first, second := r.signalingNode(nil), r.signalingNode(nil)
	stays, _ := first.join("lobby", "Ada")
	goes, joined := first.join("attic", "Grace")
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer other.Close()
	view := func(node cluster.Node) *cluster.View {
		node.ID, node.Boot = "sfu-2", unreached.pin(firstEpoch).Boot
		return &cluster.View{
			Nodes:     map[ring.NodeID]cluster.Node{"sfu-1": {Boot: reached.pin(firstEpoch).Boot, Load: cluster.Load{Watchers: 2}}, "sfu-2": node},
			Signaling: map[ring.NodeID]cluster.Node{"signaling-2": {HTTP: strings.TrimPrefix(other.URL, "http://")}},
		}
	}
	asker, now := readiness.New(generous), time.Now()
	var since map[pin.BootID]time.Time
	for _, step := range []struct {
		node  cluster.Node
		after time.Duration
	}{
		{cluster.Node{Unreachable: true}, 0},
		{cluster.Node{Unreachable: true}, unreachedFor}, // Nobody hears it.
		{cluster.Node{Unreachable: true, Load: cluster.Load{Watchers: 1}}, unreachedFor},
		{cluster.Node{Load: cluster.Load{Watchers: 1}}, unreachedFor}, // It is heard in between.
		{cluster.Node{Unreachable: true, Load: cluster.Load{Watchers: 1}}, 2 * unreachedFor},
		{cluster.Node{Unreachable: true, Load: cluster.Load{Watchers: 1}}, 3*unreachedFor - time.Second},
	} {
		since = first.reach.handOver(t.Context(), asker, view(step.node), since, now.Add(step.after))
	}
	for _, client := range []*client{stays, goes} {
		client.say(&wire.Ping{T: 1})
		hear[*wire.Pong](client)
	}
	first.reach.handOver(t.Context(), asker, view(cluster.Node{Unreachable: true, Load: cluster.Load{Watchers: 1}}), since, now.Add(3*unreachedFor))
	if code, _ := goes.closed(); code != websocket.StatusServiceRestart {
		t.Fatalf("closed with %v", code)
	}
	back := first.dial()
	back.say(&wire.Resume{Resume: joined.Resume, Attempt: 2})
	if fault := hear[*wire.Error](back); fault.Code != wire.CodeNotReady || !fault.Retryable {
		t.Errorf("who comes back is told %+v", fault)
	}
	stays.say(&wire.Ping{T: 2})
	hear[*wire.Pong](stays)
	grace := second.dial()
	grace.say(&wire.Resume{Resume: joined.Resume, Attempt: 3})
	if m := hear[*wire.Resumed](grace); m.Node != "sfu-2" {
		t.Fatalf("resumed %+v", m)
	}
}

// TestASignalingNodeThatAloneLosesTheStoreIsNotReady: while all have lost it, all are ready.
func TestASignalingNodeThatAloneLosesTheStoreIsNotReady(t *testing.T) {
	r := newRig(t)
	var otherReaches atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if otherReaches.Load() {
			w.Header().Set(readiness.StoreHeader, readiness.StoreReached)
		}
	}))
	defer other.Close()
	r.views.add(cluster.Node{ID: "signaling-2", Role: cluster.RoleSignaling, HTTP: strings.TrimPrefix(other.URL, "http://")})
	e := r.signalingNode(func(c *Config) { c.StorelessAfter = 10 * time.Millisecond })
	ready := func(want bool, what, reached string) {
		t.Helper()
		testkit.Eventually(t, what, func() bool {
			status, body, header := e.get("/readyz", "")
			return (status == http.StatusOK) == want && (want || strings.Contains(body, "store")) && header.Get(readiness.StoreHeader) == reached
		})
	}
	ready(true, "ready with a store", readiness.StoreReached)
	r.placer.mu.Lock()
	r.placer.fail = errors.New("the store is away")
	r.placer.mu.Unlock()
	ready(true, "ready while nobody reaches the store", "")
	otherReaches.Store(true)
	ready(false, "not ready while another one reaches the store", "")
	otherReaches.Store(false)
	ready(true, "ready when the other one has lost it too", "")
	otherReaches.Store(true)
	ready(false, "not ready again", "")
	r.placer.mu.Lock()
	r.placer.fail = nil
	r.placer.mu.Unlock()
	ready(true, "ready with the store back", readiness.StoreReached)
}
