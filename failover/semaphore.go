package failover

import (
	"cmp"
	"container/heap"
	"context"
	"sync"
)

type prioritySemaphore struct {
	// mu also guards abandoned of every waiter.
	mu      sync.Mutex
	free    int
	waiting waiterHeap
	arrived uint64
}

type waiter struct {
	// tries counts the failed tries so far.
	tries     int
	audience  int
	arrival   uint64
	admitted  chan struct{}
	abandoned bool
}

// queue returns a waiter at once, without blocking. The waiter with the fewest tries is admitted first, then the one
// with the largest audience: rooms whose part of the store is silent must not starve the others.
func (s *prioritySemaphore) queue(tries, audience int) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived++
	w := &waiter{tries: tries, audience: audience, arrival: s.arrived, admitted: make(chan struct{})}
	heap.Push(&s.waiting, w)
	s.admit()
	return w
}

// acquire waits until w is admitted. The caller calls release if, and only if, acquire returned nil.
func (s *prioritySemaphore) acquire(ctx context.Context, w *waiter) error {
	select {
	case <-w.admitted:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-w.admitted:
		s.free++
		s.admit()
	default:
		w.abandoned = true
	}
	return ctx.Err()
}

func (s *prioritySemaphore) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.free++
	s.admit()
}

// admit lets waiters in while slots are free. The caller holds mu.
func (s *prioritySemaphore) admit() {
	for s.free > 0 && s.waiting.Len() > 0 {
		if w, ok := heap.Pop(&s.waiting).(*waiter); ok && !w.abandoned {
			s.free--
			close(w.admitted)
		}
	}
}

type waiterHeap []*waiter

func (h waiterHeap) Len() int { return len(h) }

func (h waiterHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].tries, h[j].tries), cmp.Compare(h[j].audience, h[i].audience), cmp.Compare(h[i].arrival, h[j].arrival)) < 0
}

func (h waiterHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *waiterHeap) Push(x any) {
	if w, ok := x.(*waiter); ok {
		*h = append(*h, w)
	}
}

func (h *waiterHeap) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return w
}
