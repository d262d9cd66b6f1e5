package ring

import (
	"crypto/sha1" // An election hash, not a protection.
	"encoding/binary"
)

// Rendezvous elects one of nodes for key by highest random weight: every caller
// with the same set elects the same node, and when a node goes, only the keys it had
// been elected for change. The weight of a node is the first 8 bytes, big-endian, of
// SHA-1("<node>#<key>"); of equal weights the lower node id wins. The order of nodes
// does not matter. It returns false when there are none.
//
// Unlike the ring it costs one SHA-1 per node and call, which suits a handful of
// nodes and rare questions, and needs no table.
func Rendezvous(nodes []NodeID, key string) (NodeID, bool) {
	var (
		best       NodeID
		bestWeight uint64
		found      bool
		space      [128]byte
	)
	text := space[:0]
	for _, node := range nodes {
		text = append(text[:0], node...)
		text = append(text, '#')
		text = append(text, key...)
		sum := sha1.Sum(text)
		weight := binary.BigEndian.Uint64(sum[:8])
		if !found || weight > bestWeight || weight == bestWeight && node < best {
			best, bestWeight, found = node, weight, true
		}
	}
	return best, found
}
