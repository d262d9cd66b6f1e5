package history

import "sync"

// waitGroup is a sync.WaitGroup that may be joined while somebody waits: what a
// schedule starts goes on to start more, also from goroutines that nobody counts.
type waitGroup struct {
	mu    sync.Mutex
	empty *sync.Cond // of mu
	count int        // guarded by mu
}

func newWaitGroup() *waitGroup {
	g := &waitGroup{}
	g.empty = sync.NewCond(&g.mu)
	return g
}

// Go runs f and counts it until it returns.
func (g *waitGroup) Go(f func()) {
	g.mu.Lock()
	g.count++
	g.mu.Unlock()
	go func() {
		defer g.leave()
		f()
	}()
}

func (g *waitGroup) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.count--; g.count == 0 {
		g.empty.Broadcast()
	}
}

// Wait returns at a moment when nothing runs.
func (g *waitGroup) Wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.count > 0 {
		g.empty.Wait()
	}
}
