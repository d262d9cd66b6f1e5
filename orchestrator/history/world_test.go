package history

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-rtc/holdfast/pin"
	"github.com/holdfast-rtc/holdfast/ring"
)

// quiet is the logger of everybody here.
var quiet = slog.New(slog.DiscardHandler)

// world is one simulated cluster: three names of media nodes, three signaling nodes, one store.
type world struct {
	seed    uint64
	faults  faults
	record  *record
	store   *store
	calm    atomic.Bool  // the faults have ended
	over    atomic.Bool  // so has the schedule
	away    atomic.Int32 // reasons for which nobody reaches the store
	late    atomic.Int32
	running *gang          // what the schedule has started
	reports sync.WaitGroup // the load reports of all boots

	mu    sync.Mutex // guards the fields below
	sfus  []*sfu     // every boot that ever was
	edges []*edge

	book     sync.Mutex // guards the fields below
	owners   map[pin.Fence]pin.BootID
	grounds  map[pin.BootID]bool      // boots against which somebody had grounds
	standing map[pin.Fence]pin.Pin    // everything that ever stood
	holding  map[pin.BootID]pin.Fence // who serves the room now
	served   pin.Fence                // the highest that anybody served under
	split    []string                 // when a second node began to serve a room that was well served
}

// lateIDs is where the ids of callers begin that come up on the way.
const lateIDs = 500

func (w *world) lateID() int { return lateIDs + int(w.late.Add(1)) }

func newWorld(seed uint64, f faults, b broken) *world {
	w := &world{
		running: newGang(), seed: seed, faults: f, record: newRecord(), owners: make(map[pin.Fence]pin.BootID),
		grounds: make(map[pin.BootID]bool), standing: make(map[pin.Fence]pin.Pin),
		holding: make(map[pin.BootID]pin.Fence),
	}
	w.store = &store{record: w.record, broken: b, wrote: w.wrote}
	for i := range 3 {
		w.boot(i)
	}
	for i := range 3 {
		e := newEdge(w, fmt.Sprintf("edge-%d", i))
		w.mu.Lock()
		w.edges = append(w.edges, e)
		w.mu.Unlock()
	}
	return w
}

// boot starts the next boot of node i.
func (w *world) boot(i int) *sfu {
	w.mu.Lock()
	id := ring.NodeID([]string{"a", "b", "c"}[i])
	n := 1
	for _, s := range w.sfus {
		if s.id == id {
			n++
		}
	}
	boot := pin.BootID(fmt.Sprintf("%013d-%s", n, id))
	s := &sfu{world: w, id: id, boot: boot, link: &link{world: w}, caller: newCaller(w.seed, string(boot), 400+10*i+n)}
	w.sfus = append(w.sfus, s)
	w.mu.Unlock()
	s.start(context.Background())
	w.reports.Go(s.report)
	return s
}

// nodes are all boots that ever were.
func (w *world) nodes() []*sfu {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*sfu(nil), w.sfus...)
}

// truth says which boots live.
func (w *world) truth() (live, dead []*sfu) {
	for _, s := range w.nodes() {
		s.mu.Lock()
		alive := s.alive
		s.mu.Unlock()
		if alive {
			live = append(live, s)
		} else {
			dead = append(dead, s)
		}
	}
	return live, dead
}

// current is the latest boot of node i.
func (w *world) current(i int) *sfu {
	var last *sfu
	for _, s := range w.nodes() {
		if s.id == ring.NodeID([]string{"a", "b", "c"}[i]) {
			last = s
		}
	}
	return last
}

// boots are those of a name.
func (w *world) boots(id ring.NodeID) []pin.BootID {
	var all []pin.BootID
	for _, s := range w.nodes() {
		if s.id == id {
			all = append(all, s.boot)
		}
	}
	return all
}

func (w *world) everyEdge() []*edge {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*edge(nil), w.edges...)
}

// suspected notes that somebody had grounds against a boot, right or wrong.
func (w *world) suspected(boot pin.BootID) {
	w.book.Lock()
	defer w.book.Unlock()
	w.grounds[boot] = true
}

// serving notes under which fence a boot serves the room: no other may have the same, and no other may serve it
// under the highest, unless somebody had grounds against that one.
func (w *world) serving(boot pin.BootID, p pin.Pin) {
	unheard := w.unheard()
	w.book.Lock()
	defer w.book.Unlock()
	owner, begun := w.owners[p.Fence]
	if begun && owner != boot {
		w.record.fault("%s and %s both served under %v", owner, boot, p.Fence)
	}
	_, already := w.holding[boot] // Who raises the fence of its open room does not begin to serve it.
	// It asked for its pin, then somebody who had grounds against it moved the pin, and then it opened the room: it learns of that
	// a moment later.
	outrun := w.grounds[boot] && p.Fence.Less(w.served)
	for other, f := range w.holding { // At most one holds the highest.
		if !begun && !already && !outrun && other != boot && f == w.served && !w.grounds[other] && !unheard[other] {
			w.split = append(w.split, fmt.Sprintf("%v: %s begins to serve under %v, though %s, against which nobody had grounds, served under the highest fence %v",
				time.Duration(w.record.now()), boot, p.Fence, other, f))
		}
	}
	w.owners[p.Fence], w.holding[boot], w.served = boot, p.Fence, higher(w.served, p.Fence)
}

// unheard are the live boots that some signaling node does not know of yet: whom one does not know one cannot ask.
func (w *world) unheard() map[pin.BootID]bool {
	all := make(map[pin.BootID]bool)
	for _, e := range w.everyEdge() {
		view := e.View()
		for _, s := range w.nodes() {
			if view.Nodes[s.id].Boot != s.boot {
				all[s.boot] = true
			}
		}
	}
	return all
}

// serves no more: the boot died, or gave the room up.
func (w *world) servesNoMore(boot pin.BootID) {
	w.book.Lock()
	defer w.book.Unlock()
	delete(w.holding, boot)
}

// wrote judges a write that the store has done: no two pins have one fence, and a fence is above the one it
// replaces and above what anybody was told of before.
func (w *world) wrote(old value, done write) {
	w.book.Lock()
	defer w.book.Unlock()
	p := done.next
	known, ok := w.standing[p.Fence]
	switch {
	case ok && known != p:
		w.record.fault("%s and %s have one fence", show(known), show(p))
	case ok: // Written again.
	case old.absent() && !done.known.Less(p.Fence), !old.absent() && !old.pin.Fence.Less(p.Fence):
		w.record.fault("%v was replaced by %s, though %v was known", old, show(p), done.known)
	}
	w.standing[p.Fence] = p
}

// handedOver tells the signaling nodes whose peers a node has given up.
func (w *world) handedOver(boot pin.BootID, to pin.Fence) {
	for _, e := range w.everyEdge() {
		e.mu.Lock()
		here := e.at.Boot == boot
		e.mu.Unlock()
		if !here {
			continue
		}
		c := newCaller(w.seed, e.name+" after hand-over", w.lateID())
		w.running.Go(func() {
			_ = c.pause(context.Background(), c.between(2*time.Millisecond, 30*time.Millisecond))
			e.orch.Observe(room, to)
			e.join(c, pin.Pin{})
		})
	}
}
