package renumber

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRewriterClosesOverDroppedPictures: with packets displaced, none lost, the numbers written have no hole, each is written once, and
// the packets of one picture have one number of it, in order.
func TestRewriterClosesOverDroppedPictures(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := New(rapid.Uint16().Draw(t, "first"), 0, 256)
		start := r.Highest
		var arriving []Incoming
		sequence := uint32(1 << 16)
		for id := range uint16(rapid.IntRange(1, 30).Draw(t, "pictures")) {
			dropped := id > 0 && rapid.Bool().Draw(t, "dropped")
			for range rapid.IntRange(1, 3).Draw(t, "packets") {
				at := len(arriving)
				if rapid.IntRange(0, 4).Draw(t, "displaced") == 0 {
					at = max(min(1, at), at-rapid.IntRange(0, 4).Draw(t, "by"))
				}
				arriving = slices.Insert(arriving, at, Incoming{Sequence: sequence, PictureID: id, Dropped: dropped, Gapless: true})
				sequence++
			}
		}
		r.Begin(1, PayloadTypes{}, &arriving[0], 1)
		numbers := make(map[uint16]bool)
		pictures := make(map[uint16]uint16)
		for _, p := range arriving {
			out, ok := r.Rewrite(&p)
			if !ok {
				continue
			}
			if numbers[out.Sequence] {
				t.Fatalf("number %d twice", out.Sequence)
			}
			numbers[out.Sequence] = true
			if from, ok := r.Lookup(out.Sequence); !ok || (from.Sequence == 0) != out.Filler {
				t.Fatalf("found %+v for %+v", from, out)
			}
			if out.Filler != p.Dropped {
				t.Fatalf("%+v became %+v", p, out)
			}
			if out.Filler {
				continue
			}
			if had, known := pictures[p.PictureID]; known && had != out.PictureID {
				t.Fatalf("picture %d is %d and %d", p.PictureID, had, out.PictureID)
			}
			pictures[p.PictureID] = out.PictureID
			for other, had := range pictures {
				if (other < p.PictureID) != (int16(had-out.PictureID) < 0) && other != p.PictureID {
					t.Fatalf("pictures %d and %d are %d and %d", other, p.PictureID, had, out.PictureID)
				}
			}
		}
		for i := range len(numbers) {
			if !numbers[uint16(start)+1+uint16(i)] {
				t.Fatalf("a hole %d behind the start, of %d", i, len(numbers))
			}
		}
	})
}
