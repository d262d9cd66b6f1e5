package failover

import (
	"container/heap"
	"context"
	"sync"
)

// gate lets a bounded number of moves speak to the store at once, the largest
// audience first. Its queue is bounded by what queues: one ticket per active move.
type gate struct {
	mu      sync.Mutex // guards the fields below
	free    int
	waiting ticketHeap
	arrived uint64
}

// ticket is one place in the queue.
type ticket struct {
	gate     *gate
	audience int
	arrival  uint64
	index    int // in the heap; -1 once it is not waiting
	open     chan struct{}
}

func newGate(places int) *gate { return &gate{free: places} }

// queue takes a place, at once and in order of the calls, so that a batch queued by one
// goroutine is served in its order.
func (g *gate) queue(audience int) *ticket {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.arrived++
	t := &ticket{gate: g, audience: audience, arrival: g.arrived, open: make(chan struct{})}
	heap.Push(&g.waiting, t)
	g.admit()
	return t
}

// enter waits for the ticket's turn. After nil, leave must be called.
func (t *ticket) enter(ctx context.Context) error {
	select {
	case <-t.open:
		return nil
	case <-ctx.Done():
	}
	t.abandon()
	return ctx.Err()
}

// leave lets the next one in.
func (t *ticket) leave() {
	t.gate.mu.Lock()
	defer t.gate.mu.Unlock()
	t.gate.free++
	t.gate.admit()
}

// abandon gives the place up, whether or not its turn had come.
func (t *ticket) abandon() {
	t.gate.mu.Lock()
	waiting := t.index >= 0
	if waiting {
		heap.Remove(&t.gate.waiting, t.index)
	}
	t.gate.mu.Unlock()
	if !waiting {
		t.leave()
	}
}

// admit opens the gate to as many as there are places. The caller holds mu.
func (g *gate) admit() {
	for g.free > 0 && g.waiting.Len() > 0 {
		t, ok := heap.Pop(&g.waiting).(*ticket)
		if !ok {
			return // Only tickets are pushed.
		}
		g.free--
		close(t.open)
	}
}

// ticketHeap orders tickets: the largest audience first, then who came first.
type ticketHeap []*ticket

func (h ticketHeap) Len() int { return len(h) }

func (h ticketHeap) Less(i, j int) bool {
	if h[i].audience != h[j].audience {
		return h[i].audience > h[j].audience
	}
	return h[i].arrival < h[j].arrival
}

func (h ticketHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push is part of heap.Interface.
func (h *ticketHeap) Push(x any) {
	if t, ok := x.(*ticket); ok {
		t.index = len(*h)
		*h = append(*h, t)
	}
}

// Pop is part of heap.Interface.
func (h *ticketHeap) Pop() any {
	old := *h
	t := old[len(old)-1]
	old[len(old)-1] = nil
	t.index = -1
	*h = old[:len(old)-1]
	return t
}
