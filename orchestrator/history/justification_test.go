package history

import (
	"maps"
	"sync"

	"github.com/holdfast-rtc/holdfast/pin"
)

// reason is why a call may pass over a node that has the room open.
type reason string

const (
	thoughtDead reason = "thought dead"
	calledDead  reason = "called dead by who asked"
	hasRefused  reason = "refused to open the room"
	notHeardOf  reason = "not heard of"
	notAnswered reason = "asked, and did not answer"
)

// justification is what one call had against nodes at some moment. It never counts for another call.
type justification struct {
	mu      sync.Mutex // guards the fields below
	against map[pin.BootID]reason
	holds   map[pin.BootID]pin.Fence // boots that told this call that they have the room open, and were not thought dead since
}

func newJustification() *justification {
	return &justification{against: make(map[pin.BootID]reason), holds: make(map[pin.BootID]pin.Fence)}
}

// add keeps the stronger of two reasons: death, refusal, unknown.
func (g *justification) add(boot pin.BootID, why reason) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if was, ok := g.against[boot]; !ok || was == notHeardOf || why == thoughtDead {
		g.against[boot] = why
	}
	if why == thoughtDead {
		delete(g.holds, boot)
	}
}

// said notes under which pin a boot says that it has the room open.
func (g *justification) said(held pin.Pin) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds[held.Boot] = held.Fence
}

// saidBy is zero when boot did not say so.
func (g *justification) saidBy(boot pin.BootID) pin.Fence {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.holds[boot]
}

// has reports whether there is a reason against boot.
func (g *justification) has(boot pin.BootID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.against[boot]
	return ok
}

func (g *justification) ofDeath() (dead map[pin.BootID]bool, holds map[pin.BootID]pin.Fence) {
	g.mu.Lock()
	defer g.mu.Unlock()
	dead = make(map[pin.BootID]bool)
	for boot, why := range g.against {
		if why == thoughtDead {
			dead[boot] = true
		}
	}
	return dead, maps.Clone(g.holds)
}
