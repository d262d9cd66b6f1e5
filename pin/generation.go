package pin

import (
	"encoding/binary"
	"slices"
)

// Generation names one unbroken memory of one store's master: another one begins when
// the master comes back empty, or when a replica that may have missed the last writes takes
// its place. Zero means that it is not known which one it is.
type Generation uint64

// MaxGenerations bounds Generations: so many masters a Redis Cluster may have before an
// owner's report no longer names them all, and claims at the others are checked with the
// owners one by one.
const MaxGenerations = 64

// Generations is a small immutable set, comparable with ==. The zero value is empty.
type Generations string

// bytesPerGeneration is the width of one member.
const bytesPerGeneration = 8

// GenerationsOf makes a set of what is given; zeros are left out, and so is what is past
// MaxGenerations.
func GenerationsOf(given []Generation) Generations {
	sorted := slices.Clone(given)
	slices.Sort(sorted)
	var set []byte
	for _, g := range slices.Compact(sorted) {
		if g != 0 && len(set) < MaxGenerations*bytesPerGeneration {
			set = binary.BigEndian.AppendUint64(set, uint64(g))
		}
	}
	return Generations(set)
}

// Has reports whether g is in the set. Zero never is.
func (s Generations) Has(g Generation) bool {
	var wanted [bytesPerGeneration]byte
	binary.BigEndian.PutUint64(wanted[:], uint64(g))
	for at := 0; at+bytesPerGeneration <= len(s); at += bytesPerGeneration { // Every claim asks this of every node: no allocation.
		if s[at:at+bytesPerGeneration] == Generations(wanted[:]) {
			return true
		}
	}
	return false
}

// All lists the set in ascending order.
func (s Generations) All() []Generation {
	var all []Generation
	for rest := []byte(s); len(rest) >= bytesPerGeneration; rest = rest[bytesPerGeneration:] {
		all = append(all, Generation(binary.BigEndian.Uint64(rest)))
	}
	return all
}
