package signaling

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestWhoLeavesSendsItsClientsOn, those in no room too, but only where another node is ready for them, and no media is touched.
func TestWhoLeavesSendsItsClientsOn(t *testing.T) {
	r, n, first := lobby(t)
	second := r.signalingNode(nil)
	var ready atomic.Bool
	var asked atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1); !ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer other.Close()
	r.views.add(cluster.Node{ID: "signaling-2", Role: cluster.RoleSignaling, HTTP: strings.TrimPrefix(other.URL, "http://")})
	ada, joined := first.join("lobby", "Ada")
	outside := first.dial()
	outside.say(&wire.Connect{Token: r.token("", "Grace")})
	hear[*wire.Connected](outside)

	left := make(chan struct{})
	ctx, hurry := context.WithCancel(t.Context())
	defer hurry()
	go func() {
		defer close(left)
		first.Leave(ctx)
	}()
	testkit.Eventually(t, "the node not to be ready", func() bool {
		status, body, _ := first.get("/readyz", "")
		return status == http.StatusServiceUnavailable && strings.Contains(body, "another one takes over")
	})
	testkit.Eventually(t, "question to the other node", func() bool { return asked.Load() > 1 })
	ada.say(&wire.Ping{T: 1})
	hear[*wire.Pong](ada) // there is nowhere to go
	third, _ := first.join("lobby", "Carol")

	ready.Store(true)
	for _, client := range []*client{ada, outside, third} {
		if code, reason := client.closed(); code != websocket.StatusServiceRestart {
			t.Errorf("closed with %v %s", code, reason)
		}
	}
	back := first.dial()
	back.say(&wire.Resume{Resume: joined.Resume, Attempt: 2})
	if fault := hear[*wire.Error](back); fault.Code != wire.CodeNotReady || !fault.Retryable {
		t.Errorf("who comes back is told %+v", fault)
	}
	resumed := second.dial()
	resumed.say(&wire.Resume{Resume: joined.Resume, Attempt: 3})
	if m := hear[*wire.Resumed](resumed); m.Node != "sfu-1" {
		t.Errorf("resumed %+v", m)
	}
	if said := n.said(); strings.Contains(said, "leave") {
		t.Errorf("the media node heard %s", said)
	}
	<-left
}

// TestWhoHurriesLeavesAtOnce, and who has no clients need not wait.
func TestWhoHurriesLeavesAtOnce(t *testing.T) {
	_, _, e := lobby(t)
	e.Leave(t.Context())
	e.join("lobby", "Ada")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e.Leave(ctx)
}
