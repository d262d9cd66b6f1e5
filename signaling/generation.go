package signaling

import "sync/atomic"

// That is three weeks of links.
const generationsPerAttempt = 1 << 20

// generation numbers links, so that a media node fences older ones. The high part is the client's attempt, so a
// signaling node that it came to later wins.
type generation struct{ last atomic.Uint64 }

func (g *generation) begin(attempt uint64) { g.last.Store(attempt * generationsPerAttempt) }

func (g *generation) next() uint64 { return g.last.Add(1) }
