package history

import "sync"

// waitGroup may be joined while somebody waits, because a schedule starts goroutines that start more.
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

func (g *waitGroup) Wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.count > 0 {
		g.empty.Wait()
	}
}
