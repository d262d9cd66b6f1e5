package history

import "sync"

// gang is a sync.WaitGroup that may be joined while somebody waits: what a
// schedule starts goes on to start more, also from goroutines that nobody counts.
type gang struct {
	mu    sync.Mutex
	empty *sync.Cond // of mu
	count int        // guarded by mu
}

func newGang() *gang {
	g := &gang{}
	g.empty = sync.NewCond(&g.mu)
	return g
}

// Go runs f and counts it until it returns.
func (g *gang) Go(f func()) {
	g.mu.Lock()
	g.count++
	g.mu.Unlock()
	go func() {
		defer g.leave()
		f()
	}()
}

func (g *gang) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.count--; g.count == 0 {
		g.empty.Broadcast()
	}
}

// Wait returns at a moment when nothing runs.
func (g *gang) Wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.count > 0 {
		g.empty.Wait()
	}
}
