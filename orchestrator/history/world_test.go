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

var quiet = slog.New(slog.DiscardHandler)

// world is one simulated cluster: three media nodes, three signaling nodes, one store.
type world struct {
	seed    uint64
	faults  faults
	record  *record
	store   *store
	calm    atomic.Bool  // of faults
	over    atomic.Bool  // of the schedule
	away    atomic.Int32 // nobody reaches the store
	denied  atomic.Int32 // refuses writes
	late    atomic.Int32
	running *waitGroup     // started by the schedule
	reports sync.WaitGroup // of load reports

	mu             sync.Mutex // guards the fields below
	sfus           []*sfu     // that ever was
	signalingNodes []*signalingNode
	steps          []setBack // of the store's clock

	oracle *oracle
}

type setBack struct {
	at time.Time
	by time.Duration
}

func (w *world) stepBack(by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps = append(w.steps, setBack{at: time.Now(), by: by})
}

// storeTime is the store's time, for somebody who learns of its steps so much later.
func (w *world) storeTime(at time.Time, later time.Duration) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := at
	for _, s := range w.steps {
		if s.at.Add(later).Before(at) {
			told = told.Add(-s.by)
		}
	}
	return told
}

// lateIDs are for callers that begin on the way.
const lateIDs = 500

func (w *world) lateID() int { return lateIDs + int(w.late.Add(1)) }

func newWorld(seed uint64, f faults, b broken) *world {
	w := &world{
		running: newWaitGroup(), seed: seed, faults: f, record: newRecord(),
	}
	w.oracle = newOracle(w.record)
	w.store = &store{record: w.record, clock: func() time.Time { return w.storeTime(time.Now(), 0) }, broken: b, wrote: w.oracle.wrote, lost: w.oracle.disturbed, trouble: w.oracle.disturbance}
	for i := range 3 {
		w.boot(i)
	}
	for i := range 3 {
		e := newSignalingNode(w, fmt.Sprintf("signaling-%d", i))
		w.mu.Lock()
		w.signalingNodes = append(w.signalingNodes, e)
		w.mu.Unlock()
	}
	return w
}

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

func (w *world) current(i int) *sfu {
	var last *sfu
	for _, s := range w.nodes() {
		if s.id == ring.NodeID([]string{"a", "b", "c"}[i]) {
			last = s
		}
	}
	return last
}

func (w *world) boots(id ring.NodeID) []pin.BootID {
	var all []pin.BootID
	for _, s := range w.nodes() {
		if s.id == id {
			all = append(all, s.boot)
		}
	}
	return all
}

func (w *world) everySignaling() []*signalingNode {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*signalingNode(nil), w.signalingNodes...)
}

// handedOver tells the signaling nodes whose peers a node has given up.
func (w *world) handedOver(boot pin.BootID, to pin.Fence) {
	for _, e := range w.everySignaling() {
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
