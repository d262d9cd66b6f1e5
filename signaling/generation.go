package signaling

import "sync/atomic"

// Three weeks of links.
const generationsPerAttempt = 1 << 20

// generation numbers links, so that media nodes fence older ones. Its high part is the client's attempt: the latest signaling node wins.
type generation struct{ last atomic.Uint64 }

func (g *generation) begin(attempt uint64) { g.last.Store(attempt * generationsPerAttempt) }

func (g *generation) next() uint64 { return g.last.Add(1) }
