package orchestrator

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/redisstore"
	"github.com/holdfast-rtc/holdfast/redisstore/storetest"
	"github.com/holdfast-rtc/holdfast/ring"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	bootOf = testkit.BootOf
	pinAt  = testkit.PinAt
	quiet  = testkit.Quiet()
)

// patient is the default configuration with time for a machine that is busy with other tests.
func patient() Config {
	cfg := DefaultConfig()
	cfg.StoreBudget, cfg.ProbeTimeout = 30*time.Second, 30*time.Second
	return cfg
}

// sfu is a live SFU node whose boot is its number n.
func sfu(id string, n int) cluster.Node {
	return cluster.Node{
		ID: ring.NodeID(id), Boot: bootOf(id, n), Role: cluster.RoleSFU, Control: id + ".test:7000",
		Load: cluster.Load{Seq: 1, CeilingBitsPerSecond: 1_000_000_000, CeilingPacketsPerSecond: 100_000},
	}
}

// viewOf is a settled view of nodes, the draining ones not on the ring.
func viewOf(nodes ...cluster.Node) *cluster.View {
	v := &cluster.View{
		Settled: true, Nodes: make(map[ring.NodeID]cluster.Node), Signaling: make(map[ring.NodeID]cluster.Node),
		Gone: make(map[pin.BootID]cluster.Departure),
	}
	var placeable []ring.NodeID
	for _, n := range nodes {
		if n.Role == cluster.RoleSignaling {
			v.Signaling[n.ID] = n
			continue
		}
		v.Nodes[n.ID] = n
		if !n.Draining {
			placeable = append(placeable, n.ID)
		}
	}
	v.Ring = ring.New(placeable)
	return v
}

// views is a Views that tests change.
type views struct{ atomic.Pointer[cluster.View] }

func (v *views) View() *cluster.View { return v.Load() }

func fixed(view *cluster.View) *views {
	v := new(views)
	v.Store(view)
	return v
}

// addresses is a Prober: who lives where. An address that is not listed times out.
type addresses struct {
	mu         sync.Mutex
	boots      map[string]pin.BootID // empty: refused
	asked      int
	holds      map[string]map[ring.RoomID]pin.Pin // by address
	unanswered map[string]error                   // why an address does not say what it holds
	then       func()                             // runs after each answer, if there is one
}

func (a *addresses) Holds(_ context.Context, control string, room ring.RoomID) (pin.Pin, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.then != nil {
		defer a.then()
	}
	return a.holds[control][room], a.unanswered[control]
}

func (a *addresses) BootAt(_ context.Context, control string) (pin.BootID, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked++
	boot, ok := a.boots[control]
	switch {
	case !ok:
		return "", context.DeadlineExceeded
	case boot == "":
		return "", fmt.Errorf("dial %s: %w", control, ErrNobodyThere)
	default:
		return boot, nil
	}
}

// onRedis returns a client of server.
func onRedis(t testing.TB, server storetest.Server) *redisstore.Store {
	t.Helper()
	store, err := redisstore.Open(server.URL, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// keyOf is where redisstore keeps the pin of a room without braces in its name.
func keyOf(room ring.RoomID) string { return "holdfast:room:{" + string(room) + "}:node" }
