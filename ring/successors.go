package ring

import "iter"

// 16 words mark 1024 nodes without an allocation.
const inlineMarks = 16

// Successors yields every node once, in the order of the ring from the room on. The owner comes first.
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
			// Each node has many points on the ring, and is yielded at its first.
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
