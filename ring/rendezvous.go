package ring

import (
	// Package sha1 serves as a hash that every language has, not as a protection.
	"crypto/sha1"
	"encoding/binary"
)

// Rendezvous elects one of the nodes for a key, by the highest weight. It returns false if there are no nodes.
func Rendezvous(nodes []NodeID, key string) (NodeID, bool) {
	var (
		best       NodeID
		bestWeight uint64
		found      bool
	)
	for _, node := range nodes {
		weight := Weight(node, key)
		if !found || weight > bestWeight || weight == bestWeight && node < best {
			best, bestWeight, found = node, weight, true
		}
	}
	return best, found
}

// Weight is the weight of a node for a key: the first 8 bytes, big-endian, of SHA-1("<node>#<key>").
func Weight(node NodeID, key string) uint64 {
	var space [128]byte
	text := append(space[:0], node...)
	text = append(text, '#')
	text = append(text, key...)
	sum := sha1.Sum(text)
	return binary.BigEndian.Uint64(sum[:8])
}
