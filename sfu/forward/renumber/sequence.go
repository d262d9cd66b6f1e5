package renumber

const maxSequenceJump = 1024

// Tracker extends a publisher's sequence numbers to 32 bits. The zero value is ready. A jump above maxSequenceJump is a new beginning of the
// publisher's numbers: the extended ones go on without a gap.
type Tracker struct {
	started bool
	last    uint16
	// Highest is the highest extended number so far.
	Highest uint32
	// After a number from far behind, strange is set and suspect is the number that would follow it.
	suspect uint16
	strange bool
}

// Extend returns the extended number of a packet, which is never 0. It returns false for a number from so far behind that it belongs to
// another stretch; two such numbers in a row are a new beginning.
func (t *Tracker) Extend(sequence uint16) (extended uint32, ok bool) {
	if !t.started {
		t.started = true
		t.last = sequence
		t.Highest = 1 << 16
		return t.Highest, true
	}
	switch step := int32(int16(sequence - t.last)); {
	case step > 0 && step <= maxSequenceJump:
		t.Highest += uint32(step)
	case step > 0:
		t.Highest++
	case step >= -maxSequenceJump:
		return t.Highest - uint32(-step), true
	case t.strange && sequence == t.suspect:
		t.Highest++
	default:
		t.strange, t.suspect = true, sequence+1
		return 0, false
	}
	t.strange = false
	t.last = sequence
	return t.Highest, true
}
