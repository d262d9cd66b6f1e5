package pin

import (
	"encoding/binary"
	"slices"
)

// Incarnation names one unbroken memory of a store's master. It ends when the master comes back empty, or a replica
// that may lack writes takes over. Zero is unknown.
type Incarnation uint64

// MaxIncarnations bounds a set: claims at further masters are checked with the owners.
const MaxIncarnations = 64

// Incarnations is an immutable set, comparable with ==.
type Incarnations string

const bytesPerIncarnation = 8

// IncarnationsOf leaves out zeros and what is past MaxIncarnations.
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

// Has is false for zero.
func (s Incarnations) Has(g Incarnation) bool {
	var wanted [bytesPerIncarnation]byte
	binary.BigEndian.PutUint64(wanted[:], uint64(g))
	for at := 0; at+bytesPerIncarnation <= len(s); at += bytesPerIncarnation { // claims ask this of every node: no allocation
		if s[at:at+bytesPerIncarnation] == Incarnations(wanted[:]) {
			return true
		}
	}
	return false
}

// All are in ascending order.
func (s Incarnations) All() []Incarnation {
	var all []Incarnation
	for rest := []byte(s); len(rest) >= bytesPerIncarnation; rest = rest[bytesPerIncarnation:] {
		all = append(all, Incarnation(binary.BigEndian.Uint64(rest)))
	}
	return all
}
