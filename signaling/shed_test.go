package signaling

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/readiness"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/signaling/wire"
)

// TestSheddingEnds: with counts that are a second old, and balancers that use nodes which take sockets, shedding ends, and
// everybody takes sockets again.
func TestSheddingEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sockets := rapid.SliceOfN(rapid.IntRange(0, 3000), 2, 5).Draw(t, "sockets")
		perSecond := rapid.IntRange(1, 50).Draw(t, "a second")
		states, known, total := make([]evenness, len(sockets)), append([]int(nil), sockets...), 0
		for _, n := range sockets {
			total += n
		}
		for range total/perSecond + overloadedAfter + 1 {
			moved, to := 0, -1
			for i := range states {
				all := sockets[i]
				for j := range known {
					if j != i {
						all += known[j]
					}
				}
				if !states[i].count(sockets[i], all, len(sockets)) && (to < 0 || known[i] < known[to]) {
					to = i
				}
				part := min(perSecond, states[i].excess(sockets[i], all, len(sockets)))
				sockets[i] -= part
				moved += part
			}
			copy(known, sockets)
			if moved > 0 && to < 0 {
				t.Fatal("clients were sent away, and nobody takes them")
			}
			if moved > 0 {
				sockets[to] += moved
			}
		}
		for i := range states {
			if states[i].overloaded {
				t.Fatalf("a node still has too many: %v", sockets)
			}
		}
	})
}

// TestWhoIsShed: not more than there are too many, not who came just now, nobody from a line, and nobody while no other node is
// ready.
func TestWhoIsShed(t *testing.T) {
	r := newCapped(t)
	var ready atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer other.Close()
	r.views.add(cluster.Node{ID: "signaling-2", Role: cluster.RoleSignaling, HTTP: strings.TrimPrefix(other.URL, "http://")})
	e := r.signalingNode(func(c *Config) { c.ShedPerSecond = 2 })
	ann := e.asks("ann", 1, false)
	joined := hear[*wire.Joined](ann)
	r.show("ann")
	bob := e.asks("bob", 1, true)
	bob.waitsAt(1)
	codes := make(chan websocket.StatusCode, 3)
	for _, c := range []*client{ann, e.connect("cy", nil), e.connect("dee", nil)} {
		go func() { // The other side waits for the answer to its close.
			code, _ := c.closed()
			codes <- code
		}()
	}
	asker, later := readiness.New(generous), time.Now().Add(shedAfter)
	shed := func(excess int, now time.Time, want int) {
		t.Helper()
		if sent := e.shed(context.Background(), asker, excess, now); sent != want {
			t.Fatalf("%d clients were sent away, want %d", sent, want)
		}
	}
	shed(100, later, 0) // Nobody is ready.
	ready.Store(true)
	shed(0, later, 0)
	shed(100, time.Now(), 0)
	shed(1, later, 1)
	testkit.Eventually(t, "the end of one client's socket", func() bool { return e.hosted.count() == 3 })
	shed(100, later, 2)
	for range 3 {
		if code := <-codes; code != websocket.StatusServiceRestart {
			t.Errorf("closed with %v", code)
		}
	}
	testkit.Eventually(t, "the end of the others' sessions", func() bool { return e.hosted.count() == 1 })
	shed(100, later, 0) // Who waits in line stays.
	bob.say(&wire.Ping{T: 1})
	hear[*wire.Pong](bob)
	back := r.signalingNode(nil).dial()
	back.say(&wire.Resume{Resume: joined.Resume, Attempt: 2})
	if m := hear[*wire.Resumed](back); m.Node != "sfu-1" {
		t.Errorf("resumed %+v", m)
	}
	if said := r.node.said(); strings.Contains(said, "leave") {
		t.Errorf("the media node heard %s", said)
	}
}
