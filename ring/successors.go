package ring

import "iter"

// inlineMarks is how many 64-bit words of "seen" marks Successors keeps in its
// own frame: enough for 1024 nodes.
const inlineMarks = 16

// Successors yields every node once, clockwise from the room's hash: first
// the owner, then the node the room would fall to if the owner left the ring, and so
// on. Stopping early costs nothing further.
//
// The walk is lazy: the first k nodes of n cost about n*(1/n + 1/(n-1) + ... + 1/(n-k+1))
// points. It allocates nothing when ranged over directly; beyond 1024 nodes it makes one
// slice of n/8 bytes.
func (r *Ring) Successors(room RoomID) iter.Seq[NodeID] {
	return func(yield func(NodeID) bool) {
		if r.Len() == 0 {
			return
		}
		var inline [inlineMarks]uint64
		seen := inline[:]
		if len(r.nodes) > inlineMarks*64 {
			seen = make([]uint64, (len(r.nodes)+63)/64)
		}
		left := len(r.nodes)
		for i := r.search(hash32(string(room))); left > 0; i++ {
			if i == len(r.owners) {
				i = 0
			}
			owner := r.owners[i]
			word, bit := owner/64, uint64(1)<<(owner%64)
			if seen[word]&bit != 0 {
				continue
			}
			seen[word] |= bit
			left--
			if !yield(r.nodes[owner]) {
				return
			}
		}
	}
}
