package forward

// maxSequenceJump is the largest step that counts as loss or reordering: a second at 1000 packets/s, as caches hold.
const maxSequenceJump = 1024

// sequenceTracker extends numbers to 32 bits and closes gaps above maxSequenceJump.
type sequenceTracker struct {
	started bool
	last    uint16 // that of highest
	highest uint32 // extended
	suspect uint16 // would follow a packet from far behind
	strange bool   // suspect is set
}

// extend is false for a packet too old to place.
func (t *sequenceTracker) extend(sequence uint16) (extended uint32, ok bool) {
	if !t.started {
		t.started = true
		t.last = sequence
		t.highest = 1 << 16 // room for late packets
		return t.highest, true
	}
	switch step := int32(int16(sequence - t.last)); {
	case step > 0 && step <= maxSequenceJump:
		t.highest += uint32(step)
	case step > 0:
		t.highest++ // a new beginning
	case step >= -maxSequenceJump:
		return t.highest - uint32(-step), true
	case t.strange && sequence == t.suspect:
		t.highest++ // two in a row from far behind: a new beginning
	default:
		t.strange, t.suspect = true, sequence+1
		return 0, false
	}
	t.strange = false
	t.last = sequence
	return t.highest, true
}
