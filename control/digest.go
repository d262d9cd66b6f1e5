package control

import (
	"crypto/sha256"
	"encoding/binary"

	"google.golang.org/protobuf/proto"
)

// RosterDigest does not depend on the order, and is never 0. Two releases may compute different digests; then a
// roster that the other end has is told again.
func RosterDigest(roster []*Peer) uint64 {
	var sum uint64
	var entry []byte
	for _, p := range roster {
		// Marshalling fails only for invalid UTF-8.
		entry, _ = proto.MarshalOptions{Deterministic: true}.MarshalAppend(entry[:0], p)
		hash := sha256.Sum256(entry)
		sum += binary.LittleEndian.Uint64(hash[:])
	}
	return max(sum, 1)
}
