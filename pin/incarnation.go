package pin

import (
	"encoding/binary"
	"slices"
)

// Incarnation names one unbroken memory of a store's master. It ends when writes may be lost. Zero is unknown.
type Incarnation uint64

// MaxIncarnations bounds a set.
const MaxIncarnations = 64

// Incarnations is an immutable, comparable set.
type Incarnations string

const bytesPerIncarnation = 8

// IncarnationsOf leaves out zeros and those past MaxIncarnations.
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
	for at := 0; at+bytesPerIncarnation <= len(s); at += bytesPerIncarnation { // without allocation
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
