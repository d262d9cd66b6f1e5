package pin

import (
	"encoding/binary"
	"slices"
)

// Incarnation names one unbroken memory of one store's master: another one begins when
// the master comes back empty, or when a replica that may have missed the last writes takes
// its place. Zero means that it is not known which one it is.
type Incarnation uint64

// MaxIncarnations bounds Incarnations: so many masters a Redis Cluster may have before an
// owner's report no longer names them all, and claims at the others are checked with the
// owners one by one.
const MaxIncarnations = 64

// Incarnations is a small immutable set, comparable with ==. The zero value is empty.
type Incarnations string

// bytesPerIncarnation is the width of one member.
const bytesPerIncarnation = 8

// IncarnationsOf makes a set of what is given; zeros are left out, and so is what is past
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

// Has reports whether g is in the set. Zero never is.
func (s Incarnations) Has(g Incarnation) bool {
	var wanted [bytesPerIncarnation]byte
	binary.BigEndian.PutUint64(wanted[:], uint64(g))
	for at := 0; at+bytesPerIncarnation <= len(s); at += bytesPerIncarnation { // Every claim asks this of every node: no allocation.
		if s[at:at+bytesPerIncarnation] == Incarnations(wanted[:]) {
			return true
		}
	}
	return false
}

// All lists the set in ascending order.
func (s Incarnations) All() []Incarnation {
	var all []Incarnation
	for rest := []byte(s); len(rest) >= bytesPerIncarnation; rest = rest[bytesPerIncarnation:] {
		all = append(all, Incarnation(binary.BigEndian.Uint64(rest)))
	}
	return all
}
