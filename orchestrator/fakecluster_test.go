package orchestrator

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/cryptotest"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/holdfast-rtc/holdfast/cluster"
	"github.com/holdfast-rtc/holdfast/headroom"
	"github.com/holdfast-rtc/holdfast/internal/testkit"
	"github.com/holdfast-rtc/holdfast/orchestrator/pinowner"
	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// fakeSFU is a media node as placement sees it.
type fakeSFU struct {
	node   cluster.Node
	owner  *pinowner.Owner
	rooms  map[ring.RoomID]pin.Pin
	lost   []ring.RoomID // rooms that were handed over
	before func()        // runs between the confirmation of a pin and the opening of its room
}

func (h *fakeSFU) Held() []pin.Holding {
	var held []pin.Holding
	for _, room := range slices.Sorted(maps.Keys(h.rooms)) {
		held = append(held, pin.Holding{Room: room, Pin: h.rooms[room]})
	}
	return held
}

func (h *fakeSFU) Fence(room ring.RoomID, higher pin.Pin) {
	at, open := h.rooms[room]
	switch {
	case !open || !at.Fence.Less(higher.Fence):
	case higher.Boot == h.node.Boot:
		h.rooms[room] = higher
	default:
		delete(h.rooms, room)
		h.lost = append(h.lost, room)
	}
}

// attach lets somebody new into a room, as sfu does.
func (h *fakeSFU) attach(room ring.RoomID, p pin.Pin) error {
	if at, open := h.rooms[room]; open && p.Fence.Less(at.Fence) {
		return &pin.FencedError{Room: room, Current: at}
	}
	if err := h.owner.Confirm(context.Background(), room, p); err != nil {
		return err
	}
	h.before()
	if at, open := h.rooms[room]; open && p.Fence.Less(at.Fence) {
		return &pin.FencedError{Room: room, Current: at}
	}
	h.rooms[room] = p
	return nil
}

// fakeCluster is three media nodes and two signaling nodes on a store that forgets.
type fakeCluster struct {
	store          *testkit.MemoryStore
	nodes          map[ring.NodeID]*fakeSFU
	signalingNodes []*Orchestrator
	sees           []*views
	epochs         map[ring.RoomID]uint64 // the highest that anybody attached under
	fault          string
}

func newFakeCluster() *fakeCluster {
	w := &fakeCluster{store: testkit.NewMemoryStore(), nodes: make(map[ring.NodeID]*fakeSFU), epochs: make(map[ring.RoomID]uint64)}
	w.store.StartIn(1)
	for _, id := range []string{"a", "b", "c"} {
		h := &fakeSFU{node: sfu(id, 1), rooms: make(map[ring.RoomID]pin.Pin), before: func() {}}
		h.owner = pinowner.New(w.store, h, pinowner.DefaultConfig(), quiet)
		w.nodes[h.node.ID] = h
	}
	for range 2 {
		v := fixed(nil)
		w.sees, w.signalingNodes = append(w.sees, v), append(w.signalingNodes, New(w.store, v, w, patient(), quiet))
		w.gossip(v, "")
	}
	return w
}

func (w *fakeCluster) BootAt(_ context.Context, control string) (pin.BootID, error) {
	return w.at(control).node.Boot, nil
}

func (w *fakeCluster) Holds(_ context.Context, control string, room ring.RoomID) (pin.Pin, error) {
	h := w.at(control)
	if p, open := h.rooms[room]; open {
		return p, nil
	}
	impatient, cancel := context.WithCancel(context.Background())
	cancel() // One goroutine: a question under way is never answered while we wait.
	return h.owner.Opening(impatient, room)
}

func (w *fakeCluster) at(control string) *fakeSFU {
	for _, h := range w.nodes {
		if h.node.Control == control {
			return h
		}
	}
	return nil
}

// gossip shows a signaling node the present reports. One node takes no rooms in its view, or both signaling nodes
// would choose alike.
func (w *fakeCluster) gossip(v *views, full ring.NodeID) {
	var nodes []cluster.Node
	for _, id := range []ring.NodeID{"a", "b", "c"} {
		h := w.nodes[id]
		node := h.node
		node.Load.Synced = h.owner.Synced()
		node.Draining = node.ID == full
		nodes = append(nodes, node)
	}
	v.Store(viewOf(nodes...))
}

// join is a session's arrival: place, attach, and follow what the node says.
func (w *fakeCluster) join(signaling *Orchestrator, room ring.RoomID) {
	for range 6 {
		p, err := signaling.Place(context.Background(), room, headroom.Room{})
		if err != nil {
			return // It is told to try again.
		}
		err = w.nodes[p.Node].attach(room, p)
		if err == nil {
			if p.Fence.Epoch < w.epochs[room] {
				w.fault = "the epoch of " + string(room) + " went back"
			}
			w.epochs[room] = max(w.epochs[room], p.Fence.Epoch)
			return
		}
		if fenced, ok := errors.AsType[*pin.FencedError](err); ok {
			signaling.Observe(room, fenced.Current.Fence)
		}
	}
}

// check finds rooms that are open twice or were moved, though nobody died.
func (w *fakeCluster) check() string {
	where := make(map[ring.RoomID]ring.NodeID)
	for id, h := range w.nodes {
		if len(h.lost) > 0 {
			return "a room moved for no fault: " + string(h.lost[0])
		}
		for room := range h.rooms {
			if other, open := where[room]; open {
				return "room " + string(room) + " is open on " + string(other) + " and " + string(id)
			}
			where[room] = id
		}
	}
	return w.fault
}

// The store forgets while a node is about to open the room, and another signaling node claims it. That one learns of
// the node, and no second node opens the room.
func TestRoomThatIsAboutToOpenIsNotOpenedElsewhere(t *testing.T) {
	for range 8 { // Either nonce may be the higher.
		w := newFakeCluster()
		w.gossip(w.sees[1], "a")
		b := w.nodes["b"]
		b.before = func() {
			b.before = func() {}
			w.store.Lose()
			w.join(w.signalingNodes[0], class) // It would choose a.
		}
		w.join(w.signalingNodes[1], class)
		if fault := w.check(); fault != "" || b.rooms[class].IsZero() {
			t.Fatalf("%s; b has the room open under %v", fault, b.rooms[class])
		}
	}
}

// The store forgets at any moment while people join, owners refresh and gossip is late. No room moves, none is open
// twice, and no epoch goes back.
func TestForgetfulStoreNeitherMovesNorSplitsARoom(t *testing.T) {
	rapid.Check(t, repeatably(t, func(t *rapid.T) {
		w := newFakeCluster()
		room := rapid.SampledFrom([]ring.RoomID{"r", "s", class})
		sfuName := rapid.SampledFrom([]ring.NodeID{"a", "b", "c"})
		signaling := rapid.IntRange(0, 1)
		busy := false
		meanwhile := func() { // between two calls to the store, and before a room opens
			if busy {
				return
			}
			busy = true
			defer func() { busy = false }()
			for range rapid.SampledFrom([]int{0, 0, 0, 1, 2, 4}).Draw(t, "steps") {
				switch rapid.IntRange(0, 3).Draw(t, "meanwhile") {
				case 0:
					w.store.Lose()
				case 1:
					_ = w.nodes[sfuName.Draw(t, "fakeSFU")].owner.Refresh(context.Background())
				case 2:
					w.gossip(w.sees[signaling.Draw(t, "signaling")], sfuName.Draw(t, "full"))
				case 3:
					w.join(w.signalingNodes[signaling.Draw(t, "signaling")], room.Draw(t, "room"))
				}
			}
		}
		w.store.Meanwhile(meanwhile)
		for _, h := range w.nodes {
			h.before = meanwhile
		}
		t.Repeat(map[string]func(*rapid.T){
			"join":    func(t *rapid.T) { w.join(w.signalingNodes[signaling.Draw(t, "signaling")], room.Draw(t, "room")) },
			"lose":    func(*rapid.T) { w.store.Lose() },
			"refresh": func(t *rapid.T) { _ = w.nodes[sfuName.Draw(t, "fakeSFU")].owner.Refresh(context.Background()) },
			"gossip":  func(t *rapid.T) { w.gossip(w.sees[signaling.Draw(t, "signaling")], sfuName.Draw(t, "full")) },
			"new signaling": func(t *rapid.T) {
				i := signaling.Draw(t, "signaling")
				w.signalingNodes[i] = New(w.store, w.sees[i], w, patient(), quiet)
			},
			"": func(t *rapid.T) {
				if fault := w.check(); fault != "" {
					panic(wrong(fault))
				}
			},
			"a moment passes": func(*rapid.T) { <-time.After(time.Millisecond) },
		})
	}))
}

// wrong is what a check found.
type wrong string

// repeatably draws the nonces, and so the order of fences.
func repeatably(whole *testing.T, check func(*rapid.T)) func(*rapid.T) {
	return func(t *rapid.T) {
		cryptotest.SetGlobalRandom(whole, rapid.Uint64().Draw(t, "nonces"))
		var ended any // A panic also ends a check, and must stay on rapid's goroutine.
		synctest.Test(whole, func(*testing.T) {
			defer func() { ended = recover() }()
			check(t)
		})
		if fault, ok := ended.(wrong); ok {
			t.Fatal(fault) // rapid tells failures apart by line.
		}
		if ended != nil {
			panic(ended)
		}
	}
}
