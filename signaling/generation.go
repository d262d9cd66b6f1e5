package signaling

import "sync/atomic"

// generationsPerAttempt allows three weeks of links for one attempt of the client.
const generationsPerAttempt = 1 << 20

// generation numbers links, so that a media node fences older ones. The high part is the client's attempt: a signaling
// node that it came to later always wins. The low part grows with each link.
type generation struct{ last atomic.Uint64 }

func (g *generation) begin(attempt uint64) { g.last.Store(attempt * generationsPerAttempt) }

func (g *generation) next() uint64 { return g.last.Add(1) }
