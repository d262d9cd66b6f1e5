package pin

import (
	"encoding/binary"
	"slices"
)

// Incarnation names a time in which a master of the store has lost no write. A new one begins whenever writes may
// have been lost. Zero stands for an unknown one.
type Incarnation uint64

// MaxIncarnations bounds the size of a set.
const MaxIncarnations = 64

// Incarnations is an immutable set of incarnations. Two sets may be compared with ==.
type Incarnations string

const bytesPerIncarnation = 8

// IncarnationsOf returns the set of the given incarnations. It leaves out zeros, and the highest beyond
// MaxIncarnations.
func IncarnationsOf(given []Incarnation) Incarnations {
	sorted := slices.Clone(given)
	slices.Sort(sorted)
	var set []byte
	for _, g := range slices.Compact(sorted) {
		if g != 0 && len(set) < MaxIncarnations*bytesPerIncarnation {
			set = binary.BigEndian.AppendUint64(set, uint64(g))
		}
	}
	return Incarnations(set)
}

// Has reports whether the set has the incarnation. It is false for zero.
func (s Incarnations) Has(g Incarnation) bool {
	var wanted [bytesPerIncarnation]byte
	binary.BigEndian.PutUint64(wanted[:], uint64(g))
	for at := 0; at+bytesPerIncarnation <= len(s); at += bytesPerIncarnation {
		// This comparison does not allocate.
		if s[at:at+bytesPerIncarnation] == Incarnations(wanted[:]) {
			return true
		}
	}
	return false
}

// All returns the incarnations in ascending order.
func (s Incarnations) All() []Incarnation {
	var all []Incarnation
	for rest := []byte(s); len(rest) >= bytesPerIncarnation; rest = rest[bytesPerIncarnation:] {
		all = append(all, Incarnation(binary.BigEndian.Uint64(rest)))
	}
	return all
}
