package renumber

import "testing"

// TestAStreamGoesOnAtAnotherNode: with the same layer the receiver's numbers of pictures and its timestamps go on as if nothing
// had happened, also when packets were sent after the numbers were told; the sequence numbers follow those that were given.
func TestAStreamGoesOnAtAnotherNode(t *testing.T) {
	owner := New(100, 5000, 64)
	in := func(i uint32) *Incoming {
		return &Incoming{Sequence: 1<<16 + i, Timestamp: 90000 + 3000*i, PictureID: uint16(70 + i), TL0: uint8(7 + i), Frame: uint16(30 + i)}
	}
	owner.Begin(1, PayloadTypes{}, in(0), 0)
	var last Outgoing
	for i := range uint32(10) {
		last, _ = owner.Rewrite(in(i))
	}
	n, layer := owner.Numbers()
	if layer != 1 {
		t.Fatalf("layer %d is sent, want 1", layer)
	}
	standby := Continue(last.Sequence, n, 64)
	const missed = 3
	next := in(10 + missed)
	next.Sequence += 500 // The other node extends the numbers of the publisher anew.
	standby.Begin(9, PayloadTypes{}, next, 0)
	standby.Align(n.Adds)
	got, ok := standby.Rewrite(next)
	want := Outgoing{
		Sequence: last.Sequence + 1, Timestamp: last.Timestamp + 3000*(missed+1), PictureID: last.PictureID + missed + 1,
		TL0: last.TL0 + missed + 1, Frame: last.Frame + missed + 1,
	}
	if !ok || got != want {
		t.Errorf("the stream goes on as %+v, want %+v", got, want)
	}
	if n, layer := new(Rewriter).Numbers(); layer != 0 || n != (Numbers{}) {
		t.Errorf("a stream that has not begun is at %+v of layer %d", n, layer)
	}
}
