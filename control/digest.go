package control

import (
	"crypto/sha256"
	"encoding/binary"

	"google.golang.org/protobuf/proto"
)

// RosterDigest is the same for the same people in any order, whatever process reckons it, and never 0. Another release may
// write an entry otherwise: then a roster that is known is told again.
func RosterDigest(roster []*Peer) uint64 {
	var sum uint64
	var entry []byte
	for _, p := range roster {
		entry, _ = proto.MarshalOptions{Deterministic: true}.MarshalAppend(entry[:0], p) // Only text that is not UTF-8 fails.
		hash := sha256.Sum256(entry)
		sum += binary.LittleEndian.Uint64(hash[:])
	}
	return max(sum, 1)
}
