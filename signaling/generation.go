package signaling

import "sync/atomic"

// generationsPerAttempt is how many links one edge may open for one attempt of the
// client: with a pause of up to two seconds between them, three weeks of trying.
const generationsPerAttempt = 1 << 20

// generation makes the numbers by which an SFU node fences old edges. The client's
// attempt is the high part, so an edge that the client came to later always
// outranks an earlier one; the low part grows with every link that this edge
// opens, because a node refuses a number it has seen.
type generation struct{ last atomic.Uint64 }

// begin sets the client's attempt.
func (g *generation) begin(attempt uint64) { g.last.Store(attempt * generationsPerAttempt) }

// next returns a higher number than any before.
func (g *generation) next() uint64 { return g.last.Add(1) }
