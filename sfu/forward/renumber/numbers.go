package renumber

// Numbers say where a stream stands, so that another node can go on with it.
type Numbers struct {
	Timestamp uint32
	PictureID uint16
	TL0       uint8
	Frame     uint16
	Adds      Adds
}

// Adds are what the present segment adds to the numbers of its layer.
type Adds struct {
	Timestamp uint32
	PictureID uint16
	TL0       uint8
	Frame     uint16
}

// Numbers returns the present ones, and the number of the layer that is sent; 0 if there is none.
func (r *Rewriter) Numbers() (n Numbers, layer uint64) {
	n = Numbers{Timestamp: r.Timestamp, PictureID: r.pictureID, TL0: r.tl0, Frame: r.Frame}
	if r.count == 0 {
		return n, 0
	}
	s := &r.segments[(r.count-1)%keptSegments]
	n.Adds = Adds{Timestamp: s.timestampAdd, PictureID: s.shifts[s.shiftCount-1].picture, TL0: s.tl0Add, Frame: s.frameAdd}
	return n, s.Layer
}

// Continue begins behind the numbers of another node. sequence and memory are those of New.
func Continue(sequence uint16, n Numbers, memory int) Rewriter {
	r := New(sequence, n.Timestamp, memory)
	r.pictureID, r.tl0, r.Frame = n.PictureID, n.TL0, n.Frame
	return r
}

// Align has the present segment, of which no packet was sent yet, add the same as it did on the other node. Then its
// numbers show the receiver how much it has missed.
func (r *Rewriter) Align(adds Adds) {
	s := &r.segments[(r.count-1)%keptSegments]
	s.timestampAdd, s.tl0Add, s.frameAdd = adds.Timestamp, adds.TL0, adds.Frame
	s.shifts[0].picture = adds.PictureID
}
