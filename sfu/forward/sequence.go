package forward

// maxSequenceJump is the greatest step of a publisher's sequence numbers that
// counts as loss or reordering; a greater one is a new beginning. At a
// thousand packets a second it is one second, as long as any cache remembers.
const maxSequenceJump = 1024

// sequenceTracker extends 16-bit sequence numbers to 32 bits and bridges new
// beginnings, so that whoever reads its output sees no gap greater than
// maxSequenceJump.
type sequenceTracker struct {
	started bool
	last    uint16 // sequence number that belongs to highest
	highest uint32 // extended
	suspect uint16 // the number that would follow a packet from far behind
	strange bool   // suspect is set
}

// extend returns the extended number. ok is false for a packet so old that
// nobody can place it.
func (t *sequenceTracker) extend(sequence uint16) (extended uint32, ok bool) {
	if !t.started {
		t.started = true
		t.last = sequence
		t.highest = 1 << 16 // room below for what arrives late
		return t.highest, true
	}
	switch step := int32(int16(sequence - t.last)); {
	case step > 0 && step <= maxSequenceJump:
		t.highest += uint32(step)
	case step > 0:
		t.highest++ // a new beginning ahead: no gap of thousands
	case step >= -maxSequenceJump:
		return t.highest - uint32(-step), true
	case t.strange && sequence == t.suspect:
		t.highest++ // two in a row from far behind: the sender began anew
	default:
		t.strange, t.suspect = true, sequence+1
		return 0, false
	}
	t.strange = false
	t.last = sequence
	return t.highest, true
}
