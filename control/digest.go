package control

import (
	"crypto/sha256"
	"encoding/binary"

	"google.golang.org/protobuf/proto"
)

// RosterDigest ignores the order, and is never 0. Releases may differ: then a known roster is told again.
func RosterDigest(roster []*Peer) uint64 {
	var sum uint64
	var entry []byte
	for _, p := range roster {
		entry, _ = proto.MarshalOptions{Deterministic: true}.MarshalAppend(entry[:0], p) // fails only for invalid UTF-8
		hash := sha256.Sum256(entry)
		sum += binary.LittleEndian.Uint64(hash[:])
	}
	return max(sum, 1)
}
