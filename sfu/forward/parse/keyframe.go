package parse

import (
	"time"
)

// KeyframeStarts tells the first packet of each keyframe of one layer. Several packets of one keyframe look like its first: those of
// each slice of H264, and of each spatial layer of AV1. It remembers where the newest keyframe begins.
type KeyframeStarts struct {
	Count     uint64
	First     uint32    // the extended sequence number of its first packet; 0: no keyframe came
	At        time.Time // when that packet arrived
	timestamp uint32

	// The last IDR picture of H264 came without parameter sets, and its timestamp.
	bare          bool
	bareTimestamp uint32
}

// Begins reports whether a slot may switch to its layer at a packet that looks like the first one of a keyframe. An IDR picture that
// is bare needs parameter sets. They may have been lost or come late, so it begins nothing, unless the IDR picture before it was
// bare as well: such a publisher sends its parameter sets another way.
func (k *KeyframeStarts) Begins(sequence, timestamp uint32, bare bool, arrived time.Time) bool {
	same := k.First != 0 && timestamp == k.timestamp
	switch {
	case same && sequence > k.First: // another slice or spatial layer
		return false
	case !bare:
		k.bare = false
	case same:
		return false
	case !k.bare || timestamp == k.bareTimestamp:
		k.bare, k.bareTimestamp = true, timestamp
		return false
	}
	if same { // an earlier packet of the keyframe came late
		k.First = sequence
	} else if sequence > k.First {
		k.First, k.timestamp, k.At = sequence, timestamp, arrived
		k.Count++
	}
	return true
}
