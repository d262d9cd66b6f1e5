package control

import (
	"crypto/sha256"
	"encoding/binary"

	"google.golang.org/protobuf/proto"
)

// RosterDigest ignores the order and the process, and is never 0. Another release may encode entries otherwise: then a
// known roster is told again.
func RosterDigest(roster []*Peer) uint64 {
	var sum uint64
	var entry []byte
	for _, p := range roster {
		entry, _ = proto.MarshalOptions{Deterministic: true}.MarshalAppend(entry[:0], p) // only text that is not UTF-8 fails
		hash := sha256.Sum256(entry)
		sum += binary.LittleEndian.Uint64(hash[:])
	}
	return max(sum, 1)
}
