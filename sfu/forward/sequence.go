package forward

const maxSequenceJump = 1024

// sequenceTracker extends numbers to 32 bits and closes gaps above maxSequenceJump.
type sequenceTracker struct {
	started bool
	last    uint16
	highest uint32 // extended
	suspect uint16 // follows one from far behind
	strange bool   // suspect is set
}

// extend is false for a packet too old to place.
func (t *sequenceTracker) extend(sequence uint16) (extended uint32, ok bool) {
	if !t.started {
		t.started = true
		t.last = sequence
		t.highest = 1 << 16
		return t.highest, true
	}
	switch step := int32(int16(sequence - t.last)); {
	case step > 0 && step <= maxSequenceJump:
		t.highest += uint32(step)
	case step > 0:
		t.highest++
	case step >= -maxSequenceJump:
		return t.highest - uint32(-step), true
	case t.strange && sequence == t.suspect:
		t.highest++ // two in a row: a new beginning
	default:
		t.strange, t.suspect = true, sequence+1
		return 0, false
	}
	t.strange = false
	t.last = sequence
	return t.highest, true
}
