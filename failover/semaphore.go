package failover

import (
	"cmp"
	"container/heap"
	"context"
	"sync"
)

type prioritySemaphore struct {
	mu      sync.Mutex // also guards abandoned
	free    int
	waiting waiterHeap
	arrived uint64
}

type waiter struct {
	tries     int // that failed
	audience  int
	arrival   uint64
	admitted  chan struct{}
	abandoned bool
}

// queue does not block. The fewest tries go first, then the largest audience: rooms whose part of the store is silent
// must not starve others.
func (s *prioritySemaphore) queue(tries, audience int) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived++
	w := &waiter{tries: tries, audience: audience, arrival: s.arrived, admitted: make(chan struct{})}
	heap.Push(&s.waiting, w)
	s.admit()
	return w
}

// acquire: release after nil only.
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

// admit needs mu.
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
